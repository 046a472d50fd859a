package envelope

import (
	"fmt"
	"strconv"
	"time"

	"blobfeed/source/ocf"
)

// EventTime returns when an event happened, to the millisecond, like the timestamp of its record.
func EventTime(ev *ocf.Event) (time.Time, error) {
	ns, err := parseTime(ev.EventTime)
	if err != nil {
		return time.Time{}, err
	}
	return time.UnixMilli(ns / 1e6), nil
}

// parseTime parses an event's time. The service writes 2006-01-02T15:04:05.0000000Z always, which is read without
// time.Parse; anything else goes through it.
func parseTime(s string) (ns int64, err error) {
	if len(s) == len("2006-01-02T15:04:05.0000000Z") && s[4] == '-' && s[7] == '-' && s[10] == 'T' && s[13] == ':' &&
		s[16] == ':' && s[19] == '.' && s[27] == 'Z' {
		year, ok1 := digits(s[0:4])
		month, ok2 := digits(s[5:7])
		day, ok3 := digits(s[8:10])
		hour, ok4 := digits(s[11:13])
		minute, ok5 := digits(s[14:16])
		second, ok6 := digits(s[17:19])
		ticks, ok7 := digits(s[20:27])
		if ok1 && ok2 && ok3 && ok4 && ok5 && ok6 && ok7 && year >= 1970 && year < 2262 &&
			month >= 1 && month <= 12 && day >= 1 && day <= 28 && hour < 24 && minute < 60 && second < 60 {
			return time.Date(year, time.Month(month), day, hour, minute, second, ticks*100, time.UTC).UnixNano(), nil
		}
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return 0, fmt.Errorf("eventTime %.100q: want a time such as 2006-01-02T15:04:05.0000000Z", s)
	}
	if t.Year() < 1970 || t.Year() >= 2262 {
		return 0, fmt.Errorf("eventTime %.100q is out of range", s)
	}
	return t.UnixNano(), nil
}

func digits(s string) (n int, ok bool) {
	for i := range len(s) {
		c := s[i] - '0'
		if c > 9 {
			return 0, false
		}
		n = n*10 + int(c)
	}
	return n, true
}

// logical returns the low 31 bits of a sequencer, which is a hexadecimal number; 0 of one that is not.
func logical(sequencer string) int32 {
	v, err := strconv.ParseUint(sequencer[max(0, len(sequencer)-8):], 16, 32)
	if err != nil {
		return 0
	}
	return int32(v & 0x7fffffff)
}

package plain

import (
	"strings"
	"time"
)

// Span formats a duration without the parts that do not matter, such as the seconds of hours.
func Span(d time.Duration) string {
	switch {
	case d >= 48*time.Hour:
		return Count(int(d.Hours()/24), "day")
	case d >= time.Hour:
		return strings.TrimSuffix(d.Round(time.Minute).String(), "0s")
	}
	return d.Round(time.Second).String()
}

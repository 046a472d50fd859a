package pipeline

import (
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// The last records of a transaction are kept, the newest first, whichever partition was acknowledged last. They outlive
// their block, whose arrays are used again, and take little memory however long keys are.
func TestRecent(t *testing.T) {
	p := New(Settings{MemoryBytes: 1 << 20})
	var recent Recent
	b := held(t, p, 20)
	block := []byte(strings.Repeat("k", 300))
	for i := range b.Records {
		b.Records[i] = kgo.Record{
			Topic: "changes", Partition: 3, Offset: int64(100 + i), Key: block[:1+i*15], Value: block[:i],
			Headers: []kgo.RecordHeader{{Key: "ce_subject", Value: block}, {Key: "ce_type", Value: block[:2]}},
		}
	}
	s := p.Send(b, &recent)
	others, last := b.Split()
	for i := range others {
		s.Acked(&others[i])
	}
	for i := range last {
		s.Keep(&last[i])
	}
	s.Done()
	if got, _, free := p.Use(); got || free != 1 {
		t.Errorf("held %t, %d free", got, free)
	}
	copy(block, strings.Repeat("x", len(block)))
	all := recent.Records()
	if len(all) != recentRecords || all[0].Offset != 119 || all[7].Offset != 112 {
		t.Fatalf("%+v", all)
	}
	for _, r := range all {
		size := int(r.Offset - 100)
		want := Written{
			Topic: "changes", Partition: 3, Offset: r.Offset, Key: strings.Repeat("k", min(1+size*15, recentKey)),
			Type: "kk", Bytes: size,
		}
		if r != want {
			t.Errorf("%+v, want %+v", r, want)
		}
	}
	subject := kgo.RecordHeader{Key: "ce_subject", Value: block[:3]}
	recent.Keep(&kgo.Record{Key: []byte("\x00\x01avro"), Headers: []kgo.RecordHeader{subject}})
	if got := recent.Records()[0].Key; got != "xxx" {
		t.Errorf("the key of Avro is shown as %q", got)
	}
	now := time.Now()
	for _, seconds := range []int{5, 9, 1, 7, 3, 8, 2, 6, 4, 0} {
		recent.Keep(&kgo.Record{Timestamp: now.Add(time.Duration(seconds) * time.Second)})
	}
	for i, r := range recent.Records() {
		if want := now.Add(time.Duration(9-i) * time.Second); !r.Time.Equal(want) {
			t.Errorf("record %d is of %s, want %s", i, r.Time, want)
		}
	}
	if all := (*Recent)(nil).Records(); all != nil {
		t.Errorf("none has %+v", all)
	}
}

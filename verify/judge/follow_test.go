package judge

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// rounds are those of a follower.
type rounds struct {
	base *verification
	since
}

// next compares what is new, in some cluster, and continues there only if it is the brokers. It returns nil if there is
// nothing.
func (f *rounds) next(t *testing.T, in cluster) []*Report {
	t.Helper()
	reports, err := f.try(t, in)
	if err != nil && !errors.Is(err, errNothingNew) {
		t.Fatal(err)
	}
	return reports
}

func (f *rounds) try(t *testing.T, in cluster) ([]*Report, error) {
	v, s := *f.base, f.since
	v.since = &s
	if in != nil {
		v.cluster = in
	}
	reports, err := v.run(t.Context())
	if err == nil {
		s.topics, s.completed = s.ends, s.next
	}
	if in == nil {
		f.since = s
	}
	return reports, err
}

// holds compares what is new, and wants all of it to hold.
func (f *rounds) holds(t *testing.T, when string) {
	t.Helper()
	reports := f.next(t, nil)
	if err := Verdict(reports); err != nil || reports == nil {
		t.Fatalf("%s: %v: %s", when, err, shown(t, reports))
	}
}

// What a seek back repeats comes behind the markers that a follower knows. It compares all of that, finds what is lost,
// and continues behind it, whether it was there before the seek, or begins during the repeats or behind them.
func TestFollowAcrossASeek(t *testing.T) {
	places := []string{"2026/01/01/0100", "2026/01/01/0300", "2026-01-01T01:20:00Z", "earliest", "2026/01/01/0500"}
	for settings, places := range map[string][]string{
		"": places, "RESOLVED_TO=topic": places[:1], "HEADERS=none": places[:1], "TOPIC={container}": places[:2],
	} {
		for _, to := range places {
			t.Run(settings+" "+to, func(t *testing.T) {
				l, cl, _ := (&form{settings: settings}).open(t, t)
				more := func(segments int) {
					t.Helper()
					l.grow(t, segments)
					deliver(t)
				}
				more(0)
				topic := written
				if settings == "TOPIC={container}" {
					topic = ""
				}
				f := &rounds{base: bySettings(t, topic)}
				during, behind := *f, *f
				f.holds(t, "at first")
				seek(t, to)
				if rs := f.next(t, nil); rs != nil {
					t.Fatalf("the bridge has not gone on: %s", shown(t, rs))
				}
				more(0)
				for _, f := range []*rounds{f, &during} {
					if rs := f.next(t, nil); rs != nil {
						t.Fatalf("no marker tells the end of the repeats: %s", shown(t, rs))
					}
				}
				more(2)
				if s := (&scene{topic: topic, copied: copyAll(t, cl), base: f.base}); topic != "" {
					f.finds(t, s, to != "2026/01/01/0500")
				}
				all := []*rounds{f, &during, &behind}
				for i, f := range all {
					f.holds(t, []string{"behind the repeats", "it began during them", "it began behind them"}[i])
				}
				more(1)
				for _, f := range all {
					f.holds(t, "further on")
				}
				more(1)
				if topic == "" {
					return
				}
				s := &scene{topic: topic, copied: copyAll(t, cl), base: f.base}
				for p, rs := range s.topics[topic].records { // one of the newest segment
					i := len(rs) - 1
					for i >= 0 && rs[i].Key == nil {
						i--
					}
					c := s.clone()
					c.topics[topic].records[p] = slices.Delete(slices.Clone(rs), i, i+1)
					if Verdict(f.next(t, c)) == nil {
						t.Error("a loss behind the seek is not found")
					}
				}
			})
		}
	}
}

// finds puts faults into what a follower compares next: records that a seek has repeated, and others, are missing.
func (f *rounds) finds(t *testing.T, s *scene, back bool) {
	t.Helper()
	for name, lose := range map[string]func(v *victim) bool{
		"once":     faultNamed("a record is missing").put,
		"both":     loseAll,
		"repeated": faultNamed("the newest of a key does not come again").put,
	} {
		c := s.clone()
		if put := lose(s.victim(c)); !put && (back || name == "once") {
			t.Fatalf("there is no place for %q", name)
		} else if put && Verdict(f.next(t, c)) == nil {
			t.Errorf("a record is missing, %s, and that is not found", name)
		}
	}
}

// loseAll removes each record of an event that came more than once.
func loseAll(v *victim) bool {
	for p, rs := range v.data.records {
		i := slices.IndexFunc(rs, func(r *kgo.Record) bool { return r.Key != nil && v.came(r) })
		if i < 0 {
			continue
		}
		lost := rs[i]
		v.data.records[p] = slices.DeleteFunc(rs, func(r *kgo.Record) bool {
			return string(r.Key) == string(lost.Key) && string(r.Value) == string(lost.Value)
		})
		return true
	}
	return false
}

// When retention deletes what a follower has not compared, it begins again with what is left.
func TestFollowBehindRetention(t *testing.T) {
	l, cl, _ := new(form).open(t, t)
	deliver(t)
	f := &rounds{base: bySettings(t, written)}
	f.holds(t, "at first")
	l.grow(t, 3)
	deliver(t)
	cut := kadm.Offsets{}
	for p, rs := range copyAll(t, cl).topics[written].records { // up to the marker before the last two
		markers := slices.DeleteFunc(slices.Clone(rs), func(r *kgo.Record) bool { return r.Key != nil })
		cut.AddOffset(written, p, markers[len(markers)-3].Offset, -1)
	}
	if _, err := kadm.NewClient(cl).DeleteRecords(t.Context(), cut); err != nil {
		t.Fatal(err)
	}
	if _, err := f.try(t, nil); err == nil || !strings.Contains(err.Error(), "retention was faster") {
		t.Errorf("it is not said: %v", err)
	}
	f.holds(t, "what is left")
	l.grow(t, 1)
	deliver(t)
	f.holds(t, "further on")
}

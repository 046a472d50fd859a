package verify

import (
	"runtime"
	"testing"
)

// All validators together, as a test of a million events runs them. To expect the events is not in the time.
func BenchmarkAll(b *testing.B) {
	const n, blobs, perSegment = 1_000_000, 20_000, 50_000
	records := make([]Record, 0, n)
	for i := range n {
		records = append(records, data(i, i%blobs, i/perSegment))
	}
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		b.StartTimer()
		g := All(NewUnique(), NewOrder(), NewSequence(), NewPartition(partitions, partitionOf),
			NewResolved(partitions))
		for i := range records {
			g.Note(records[i])
		}
		if f := g.Failures(); len(f) > 0 {
			b.Fatal(f[0])
		}
	}
	b.ReportMetric(n*float64(b.N)/b.Elapsed().Seconds(), "records/s")
}

// What each validator keeps, a million events of 20,000 blobs on: bytes an event. The keys' own bytes are in it.
func BenchmarkMemory(b *testing.B) {
	const n, blobs, perSegment = 1_000_000, 20_000, 50_000
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	for name, fresh := range map[string]func() Validator{
		"unique": func() Validator { return NewUnique() }, "order": func() Validator { return NewOrder() },
		"sequence":  func() Validator { return NewSequence() },
		"partition": func() Validator { return NewPartition(partitions, partitionOf) },
		"resolved":  func() Validator { return NewResolved(partitions) },
		"replay":    func() Validator { return &Replay{} },
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				before := heap()
				v := fresh()
				replay, _ := v.(*Replay)
				for i := range n {
					r := data(i, i%blobs, i/perSegment)
					if replay != nil {
						replay.Expect(r, true)
					} else {
						v.Note(r)
					}
				}
				b.ReportMetric(float64(heap()-before)/n, "B/event")
				runtime.KeepAlive(v)
			}
		})
	}
}

package verify

import "testing"

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
		complete := NewComplete()
		for i := range records {
			complete.Expect(string(records[i].Header("ce_id")))
		}
		b.StartTimer()
		g := All(NewUnique(), complete, NewOrder(), NewSequence(), NewPartition(partitions, partitionOf), NewBarrier(), NewResolved(partitions))
		for i := range records {
			g.Note(records[i])
		}
		if f := g.Failures(); len(f) > 0 {
			b.Fatal(f[0])
		}
	}
	b.ReportMetric(n*float64(b.N)/b.Elapsed().Seconds(), "records/s")
}

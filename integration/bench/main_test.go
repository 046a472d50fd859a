package main

import "testing"

// The first measurement of docs/project/performance.md can be repeated.
func TestMeasures(t *testing.T) {
	if err := run(t.Context(), 2000, 3, 1, 0); err != nil {
		t.Error(err)
	}
}

func TestSelectedRows(t *testing.T) {
	base, rows := table(1000)
	for names, want := range map[string]int{"all": len(rows), "shards": 6, "shards=64": 1, "segment=20": 1} {
		chosen, err := selected(rows, []string{names})
		if err != nil || len(chosen) != want {
			t.Errorf("%s: %d rows, want %d, %v", names, len(chosen), want, err)
		}
	}
	if _, err := selected(rows, []string{"shards", "shards=65"}); err == nil {
		t.Error("a row that is not in the table is selected")
	}
	for _, r := range rows {
		if r.load == base {
			t.Errorf("%s is the base", r.name())
		}
	}
}

func TestMedian(t *testing.T) {
	for want, of := range map[float64][]float64{1: {1}, 2: {3, 1}, 3: {9, 3, 1}} {
		if got := median(of); got != want {
			t.Errorf("%v of %v", got, of)
		}
	}
}

package account

import (
	"slices"
	"sort"
)

// entry is a blob.
type entry struct {
	name        string
	contentType string
	kind        string // BlockBlob
	tier        string // "": inferred
	length      int64
	ticks       int64 // of the last change, in units of 100 ns since 1970
}

// maxRun is how many entries a run has at most.
const maxRun = 1024

// sorted is a list of entries in order of their names, in runs, so that a change moves few of them.
type sorted struct {
	runs  [][]entry // none is empty
	count int
}

// find returns where the first entry is whose name is not before name, and whether it is that name's.
func (l *sorted) find(name string) (run, at int, ok bool) {
	run = sort.Search(len(l.runs), func(i int) bool {
		return compare(l.runs[i][len(l.runs[i])-1].name, name) >= 0
	})
	if run == len(l.runs) {
		return run, 0, false
	}
	at, ok = slices.BinarySearchFunc(l.runs[run], name, func(e entry, name string) int { return compare(e.name, name) })
	return run, at, ok
}

// put adds or replaces an entry.
func (l *sorted) put(e entry) {
	run, at, ok := l.find(e.name)
	if ok {
		l.runs[run][at] = e
		return
	}
	l.count++
	if run == len(l.runs) { // behind all others
		if run == 0 || len(l.runs[run-1]) >= maxRun {
			l.runs = append(l.runs, append(make([]entry, 0, maxRun), e))
			return
		}
		run, at = run-1, len(l.runs[run-1])
	}
	l.runs[run] = slices.Insert(l.runs[run], at, e)
	if r := l.runs[run]; len(r) > maxRun {
		half := len(r) / 2
		l.runs = slices.Insert(l.runs, run+1, slices.Clone(r[half:]))
		l.runs[run] = slices.Delete(r, half, len(r))
	}
}

// remove removes an entry, if it is there, and returns it.
func (l *sorted) remove(name string) (e entry, ok bool) {
	run, at, ok := l.find(name)
	if !ok {
		return e, false
	}
	e = l.runs[run][at]
	l.count--
	if l.runs[run] = slices.Delete(l.runs[run], at, at+1); len(l.runs[run]) == 0 {
		l.runs = slices.Delete(l.runs, run, run+1)
	}
	return e, true
}

// from calls f for the entries from name on, until it returns false.
func (l *sorted) from(name string, f func(*entry) bool) {
	run, at, _ := l.find(name)
	for ; run < len(l.runs); run, at = run+1, 0 {
		for i := at; i < len(l.runs[run]); i++ {
			if !f(&l.runs[run][i]) {
				return
			}
		}
	}
}

// compare compares UTF-16 code units. Code points from U+10000 on are surrogates there, which sort before U+E000. In
// UTF-8 they begin with 0xF0 or more, and those from U+E000 on with 0xEE or 0xEF.
func compare(a, b string) int {
	n := min(len(a), len(b))
	for i := range n {
		if x, y := a[i], b[i]; x != y {
			if x >= 0xEE && y >= 0xEE && (x >= 0xF0) != (y >= 0xF0) {
				return int(y) - int(x)
			}
			return int(x) - int(y)
		}
	}
	return len(a) - len(b)
}

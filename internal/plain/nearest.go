package plain

import "slices"

// Nearest returns the name that differs least from what was written; "" if each differs in more than wrong letters.
func Nearest(written string, names []string, wrong int) (best string) {
	least := wrong + 1
	slices.Sort(names)
	for _, name := range names {
		if apart := len(written) - len(name); apart > wrong || -apart > wrong {
			continue // more letters to insert or remove than may be wrong
		}
		if d := distance(written, name); d < least {
			best, least = name, d
		}
	}
	return best
}

// distance is Levenshtein's: how many letters to insert, remove or replace.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replace := diagonal
			if a[i] != b[j] {
				replace++
			}
			diagonal = row[j+1]
			row[j+1] = min(replace, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

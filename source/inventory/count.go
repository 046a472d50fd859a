package inventory

import (
	"context"
	"time"
)

// countTimeout bounds a request that nothing depends on.
const countTimeout = 10 * time.Second

// Count returns how many containers are selected. It is for operators, so a failure is no matter: the listing itself
// reports it.
func Count(ctx context.Context, s Store, selects func(container string) bool) (count int) {
	ctx, cancel := context.WithTimeout(ctx, countTimeout)
	defer cancel()
	for name, err := range Names(ctx, s) {
		if err != nil {
			return 0
		}
		if selects(name) {
			count++
		}
	}
	return count
}

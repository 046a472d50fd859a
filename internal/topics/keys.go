package topics

import (
	"context"
	"errors"
	"fmt"
)

// ErrForgets says that the settings of a topic let the last record of a key be deleted.
var ErrForgets = errors.New("does not keep every key")

// KeepsKeys returns ErrForgets if a topic does not keep the last record of every key: its retention deletes records.
func (a *Admin) KeepsKeys(ctx context.Context, names ...string) error {
	all, err := Read(ctx, a.admin(), names...)
	if err != nil {
		return err
	}
	for _, name := range names {
		if s := all[name]; s.bounded() {
			return fmt.Errorf("topic %s %w: it has cleanup.policy=%s and %s=%s", name, ErrForgets,
				s[cleanupPolicy], s.limit(), s[s.limit()])
		}
	}
	return nil
}

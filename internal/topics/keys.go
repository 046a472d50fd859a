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
		s := all[name]
		if !s.deletes() {
			continue
		}
		for _, limit := range []string{retention, "retention.bytes"} {
			if value := s[limit]; value != "-1" {
				return fmt.Errorf("topic %s %w: it has cleanup.policy=%s and %s=%s", name, ErrForgets,
					s["cleanup.policy"], limit, value)
			}
		}
	}
	return nil
}

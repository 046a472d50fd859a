package topics

import (
	"context"
	"fmt"
)

// KeepsKeys returns an error if a topic does not keep the last record of every key: its retention deletes records.
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
				return fmt.Errorf("topic %s does not keep every key: it has cleanup.policy=%s and %s=%s", name,
					s["cleanup.policy"], limit, value)
			}
		}
	}
	return nil
}

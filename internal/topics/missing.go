package topics

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"blobfeed/internal/plain"
)

// MissingError is a topic that does not exist.
type MissingError struct {
	Topic  string
	Had    int32    // partitions, if records were written to it; 0: unknown
	Create []string // the commands that create it, and others that are missing at a first start; none: unknown
}

func (e *MissingError) Error() string {
	if n := len(e.Create) - 1; n > 0 {
		return fmt.Sprintf("topic %s and %s do not exist: %s", e.Topic, plain.Count(n, "other"), e.Advice())
	}
	return "topic " + e.Topic + " does not exist: " + e.Advice()
}

// Advice says what to do about it.
func (e *MissingError) Advice() string {
	const restart = "or restart from scratch with bridge reset, or with another BRIDGE_NAME and BRIDGE_TOPIC"
	command := strings.Join(e.Create, " && ")
	switch {
	case e.Had > 0:
		return fmt.Sprintf("its records are gone: create it with %s, as it had (%s), "+
			"to continue with new records, %s", plain.Count(e.Had, "partition"), command, restart)
	case len(e.Create) == 1:
		return "set BRIDGE_TOPIC_CREATE=explicit, or create it: " + command
	case len(e.Create) > 1:
		return "set BRIDGE_TOPIC_CREATE=explicit, or create them (bridge config --format strimzi prints them as " +
			"resources): " + command
	}
	return "create it (BRIDGE_TOPIC_CREATE=explicit does that for a topic without records). If it was deleted, its " +
		"records are gone: create it with as many partitions to continue with new records, " + restart
}

// withPartitions adds to the error of a missing topic what it had.
func (p *Plan) withPartitions(err error, had map[string]int32) error {
	var gone *MissingError
	if errors.As(err, &gone) {
		return p.Lost(&Topic{Kind: Records, Name: gone.Topic, Partitions: had[gone.Topic]})
	}
	return err
}

// Lost returns the error for a topic that had records.
func (p *Plan) Lost(t *Topic) *MissingError {
	return &MissingError{Topic: t.Name, Had: t.Partitions, Create: []string{p.CreateCommand(t)}}
}

// Missing returns the error for those of the topics that do not exist, if nobody but the user creates them.
func (a *Admin) Missing(ctx context.Context, wanted ...Topic) error {
	if a.By != ByNobody {
		return nil
	}
	var all *MissingError
	for i := range wanted {
		_, err := Count(ctx, a.admin(), wanted[i].Name)
		var gone *MissingError
		switch {
		case err == nil:
			continue
		case !errors.As(err, &gone):
			return err
		case all == nil:
			all = gone
		}
		all.Create = append(all.Create, a.CreateCommand(&wanted[i]))
	}
	if all == nil {
		return nil
	}
	return all
}

// CreateCommand returns the command that creates a topic as the bridge would.
func (p *Plan) CreateCommand(t *Topic) string {
	text := fmt.Sprintf("kafka-topics.sh %s --create --topic %s --partitions %d", p.Flags, t.Name, t.Partitions)
	if p.Replication > 0 {
		text += fmt.Sprintf(" --replication-factor %d", p.Replication)
	}
	settings := p.Settings(t.Kind)
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		text += " --config " + name + "=" + *settings[name]
	}
	return text
}

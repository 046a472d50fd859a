package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"blobfeed/bridge"
	"blobfeed/internal/config"
	"blobfeed/internal/status"
	"blobfeed/internal/topicname"
	"blobfeed/offsets"
)

const replayHelp = `
Delivers the events between two times into a topic of their own, in the same way as run, with a state of its own: the live
bridge is not touched and may run meanwhile. What was interrupted goes on when the same command is given again. It ends when
the feed is complete up to --to. All other settings are those of run.
--cleanup deletes the state of a replay afterwards; its records stay.
`

func replayVerb(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	fs := flags("replay", "--from TIME --to TIME --topic TOPIC [--name NAME] | --cleanup --topic TOPIC [--name NAME]", stderr, func(w io.Writer) { fmt.Fprint(w, replayHelp) })
	from := fs.String("from", "", "first time (or text of an \"updated\"), or earliest")
	to := fs.String("to", "", "last time (or text of an \"updated\")")
	topic := fs.String("topic", "", "where the records go; not the topic of the live bridge")
	name := fs.String("name", "", "name of the replay's state (default: <BRIDGE_NAME>.replay.<topic>)")
	cleanup := fs.Bool("cleanup", false, "delete the state of this replay")
	if err := parse(fs, args); err != nil {
		return err
	}
	if *topic == "" || *cleanup != (*from == "" && *to == "") || !*cleanup && (*from == "" || *to == "") {
		return &usageError{errors.New("replay needs --from, --to and --topic, or --cleanup and --topic")}
	}
	if !*cleanup {
		if err := inOrder(*from, *to); err != nil {
			return &usageError{err}
		}
	}
	if strings.Contains(*topic, "{") {
		return &usageError{fmt.Errorf("--topic %s: want the name of one topic", *topic)}
	}
	live, err := loadConfig(!*cleanup)
	if err != nil {
		return &usageError{fmt.Errorf("settings:\n%w", err)}
	}
	if *cleanup {
		return cleanUp(ctx, live.Name, cmp.Or(*name, replayName(live, *topic)), stdout)
	}
	c, err := with(live, func(c *config.Config) {
		c.Name, c.Start, c.EndTime, c.Topic = cmp.Or(*name, replayName(live, *topic)), *from, *to, *topic
		c.HTTPAddr = "off" // the live bridge's, if it runs on this machine
	})
	if err != nil {
		return &usageError{fmt.Errorf("the replay's settings:\n%w", err)}
	}
	if err := notLive(ctx, live, c); err != nil {
		return err
	}
	keys, err := replayedKeys(ctx, live, c)
	if err != nil {
		return err
	}
	p, err := work(ctx, c, false, keys, stderr)
	if err != nil {
		return err
	}
	return inState(ctx, c, func(_ context.Context, r *reader, s *offsets.State) error {
		if s.Frontier == nil || !s.Frontier.Ended {
			return errors.New("stopped before the end: the same command goes on from here")
		}
		_, err := fmt.Fprintf(stdout, "topic %s has the events from %s to %s: %d records came in this run, %d in all\n"+
			"the state of the replay is in topic %s; bridge replay --cleanup --topic %s%s deletes it\n",
			*topic, *from, *to, p.records.Load(), status.Of(c.Name, s, status.Group{}, r.Now()).Totals.Emitted, r.Topic, *topic, nameFlag(*name))
		return err
	})
}

// inOrder refuses times that can't be read, and those between which there is nothing.
func inOrder(from, to string) error {
	last, err := bridge.ParseEnd(to)
	if err != nil {
		return fmt.Errorf("--to: %w", err)
	}
	if from == "earliest" {
		return nil
	}
	first, err := bridge.ParseTime(from)
	if err != nil {
		return fmt.Errorf("--from: %w, nor earliest", err)
	}
	if first.Compare(last) > 0 {
		return fmt.Errorf("--from %s is later than --to %s", from, to)
	}
	return nil
}

func replayName(live *config.Config, topic string) string { return live.Name + ".replay." + topic }

func nameFlag(name string) string {
	if name == "" {
		return ""
	}
	return " --name " + name
}

// notLive refuses what the live bridge writes to.
func notLive(ctx context.Context, live, replay *config.Config) error {
	if replay.Name == live.Name {
		return &usageError{fmt.Errorf("--name %s is the live bridge's: a replay has a state of its own", live.Name)}
	}
	taken := map[string]bool{live.Topic: true, live.Name + ".offsets": true, topicname.DeadLetters(live.Name): true}
	err := inState(ctx, live, func(_ context.Context, _ *reader, s *offsets.State) error {
		if s.Frontier != nil {
			for topic := range s.Frontier.Topics {
				taken[topic] = true
			}
		}
		return nil
	})
	var never *status.NeverRanError
	if err != nil && !errors.As(err, &never) {
		return err
	}
	if taken[replay.Topic] || taken[strings.TrimSuffix(replay.Topic, ".resolved")] {
		return &usageError{fmt.Errorf("--topic %s is one of the live bridge's: a replay would write its events there a second time", replay.Topic)}
	}
	return nil
}

// cleanUp deletes the state of a replay.
func cleanUp(ctx context.Context, live, name string, stdout io.Writer) error {
	if name == live {
		return &usageError{fmt.Errorf("--name %s is the live bridge's: see bridge reset", live)}
	}
	c, err := loadKafka()
	if err != nil {
		return &usageError{fmt.Errorf("settings:\n%w", err)}
	}
	c.Name = name
	return inState(ctx, c, func(ctx context.Context, r *reader, _ *offsets.State) error {
		group, err := r.Group(ctx)
		if err != nil {
			return err
		}
		if len(group.Members) > 0 {
			return fmt.Errorf("replay %s is running: stop it first", name)
		}
		if rs, err := r.Admin.DeleteTopics(ctx, r.Topic); err != nil || rs.Error() != nil {
			return fmt.Errorf("deleting topic %s: %w", r.Topic, errors.Join(err, rs.Error()))
		}
		if group.State != "Dead" {
			if _, err := r.Admin.DeleteGroup(ctx, name); err != nil {
				return fmt.Errorf("deleting group %s: %w", name, err)
			}
		}
		_, err = fmt.Fprintf(stdout, "topic %s is deleted\n", r.Topic)
		return err
	})
}

package topics

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"blobfeed/internal/plain"
)

// The settings of topics that matter here.
const (
	cleanupPolicy = "cleanup.policy"
	retention     = "retention.ms"
	retentionSize = "retention.bytes"
	minInSync     = "min.insync.replicas"
	unclean       = "unclean.leader.election.enable"
	maxMessage    = "max.message.bytes"
	timestamps    = "message.timestamp.type"

	forever = "-1" // of both limits of retention
)

const (
	usualLimit   = 1_048_588 // Kafka's default of max.message.bytes
	defaultLimit = 1_000_012 // less what its client reserves
	maxRequest   = 64 << 20  // larger requests no client sends
)

// Settings are those of a topic, by Kafka's names.
type Settings map[string]string

// Read reads the settings of topics. A topic that does not exist is a MissingError.
func Read(ctx context.Context, admin *kadm.Client, names ...string) (map[string]Settings, error) {
	if len(names) == 0 {
		return nil, nil
	}
	configs, err := admin.DescribeTopicConfigs(ctx, names...)
	if err != nil {
		return nil, fmt.Errorf("reading the settings of topics %s: %w", strings.Join(names, ", "), err)
	}
	all := map[string]Settings{}
	for _, name := range names {
		rc, err := configs.On(name, nil)
		if err == nil {
			err = rc.Err
		}
		if errors.Is(err, kerr.UnknownTopicOrPartition) {
			return nil, &MissingError{Topic: name}
		}
		if err != nil {
			return nil, fmt.Errorf("reading the settings of topic %s: %w", name, err)
		}
		all[name] = SettingsOf(rc)
	}
	return all, nil
}

// SettingsOf returns the settings in an answer of a broker.
func SettingsOf(rc kadm.ResourceConfig) Settings {
	s := Settings{}
	for _, c := range rc.Configs {
		s[c.Key] = c.MaybeValue()
	}
	return s
}

// MaxMessage returns the largest batch that the topic takes, in bytes.
func (s Settings) MaxMessage() int32 {
	bytes, err := strconv.ParseInt(s[maxMessage], 10, 32)
	if err != nil {
		return defaultLimit
	}
	return int32(bytes)
}

// Compacted reports whether compaction removes records.
func (s Settings) Compacted() bool { return slices.Contains(s.policies(), "compact") }

// deletes reports whether retention removes records.
func (s Settings) deletes() bool { return slices.Contains(s.policies(), "delete") }

func (s Settings) policies() []string {
	return strings.Split(strings.ReplaceAll(s[cleanupPolicy], " ", ""), ",")
}

// limit returns the setting by which retention deletes records, by their age or by the size of the topic; "" if none
// does.
func (s Settings) limit() string {
	if _, byAge := s.deletesAfter(); byAge {
		return retention
	}
	if bytes, err := strconv.ParseInt(s[retentionSize], 10, 64); s.deletes() && err == nil && bytes >= 0 {
		return retentionSize
	}
	return ""
}

// Millis parses a setting in milliseconds. A negative value, or one longer than a duration, is no bound.
func Millis(text string) (time.Duration, bool) {
	ms, err := strconv.ParseInt(text, 10, 64)
	if err != nil || ms < 0 || ms > math.MaxInt64/int64(time.Millisecond) {
		return 0, false
	}
	return time.Duration(ms) * time.Millisecond, true
}

// deletesAfter returns the age at which retention deletes records, if it does.
func (s Settings) deletesAfter() (age time.Duration, deletes bool) {
	age, bounded := Millis(s[retention])
	return age, bounded && s.deletes()
}

// Severity is what a Problem leads to.
type Severity int

// The severities, by weight.
const (
	Risk  Severity = iota // records may be lost later, or say something else
	Fault                 // the brokers reject records, or delete the state
	Unfit                 // as Fault, and another attempt does not help: the bridge must not start
)

// Problem is a setting of a topic that does not fit what the bridge writes to the topic.
type Problem struct {
	Severity              Severity
	Topic, Setting, Value string
	Why                   string
	Do                    string // what to do about it
}

// Detail says what does not fit, and why.
func (p *Problem) Detail() string {
	return fmt.Sprintf("topic %s has %s=%s: %s", p.Topic, p.Setting, p.Value, p.Why)
}

func (p *Problem) Error() string { return p.Detail() + "; " + p.Do }

// unfit returns the first problem that must stop the bridge.
func unfit(problems []Problem) error {
	for _, p := range problems {
		if p.Severity == Unfit {
			return &p
		}
	}
	return nil
}

// judge collects the problems of one topic.
type judge struct {
	plan     *Plan
	topic    *Topic
	settings Settings
	problems []Problem
}

// Judge compares the settings of a topic with what its records need. Replicas is the least that a partition has.
func (p *Plan) Judge(t *Topic, s Settings, replicas int, now time.Time) []Problem {
	j := p.content(t, s, now)
	j.durability(replicas)
	j.size()
	return j.problems
}

// content judges what becomes of records once they are written.
func (p *Plan) content(t *Topic, s Settings, now time.Time) *judge {
	j := &judge{plan: p, topic: t, settings: s}
	j.policy()
	if t.Kind == Records || t.Kind == Markers {
		j.times(now)
	}
	return j
}

func (j *judge) add(s Severity, setting, why, do string) {
	j.problems = append(j.problems, Problem{s, j.topic.Name, setting, j.settings[setting], why, do})
}

// alter returns the command that changes a setting.
func (j *judge) alter(setting, value string) string {
	return fmt.Sprintf("kafka-configs.sh %s --alter --topic %s --add-config %s=%s", j.plan.Flags, j.topic.Name,
		setting, value)
}

// policy judges which records the brokers remove, or reject because they have no key.
func (j *judge) policy() {
	kind := j.topic.Kind
	keyless := kind == Markers || kind == Records && j.plan.Inline
	switch {
	case kind == State && j.settings.deletes():
		j.add(Fault, cleanupPolicy, "retention would delete progress", "run "+j.alter(cleanupPolicy, "compact"))
	case keyless && j.settings.Compacted():
		why, do := "the brokers would reject resolved markers, which have no key", j.alter(cleanupPolicy, "delete")
		if kind == Records {
			why += ", and the records beside them"
			do = "set BRIDGE_RESOLVED_TO=topic (or off), or run " + do
		}
		j.add(Unfit, cleanupPolicy, why, do)
	case kind == Records && j.plan.Copy != NoCopy && j.settings.limit() != "":
		why := "BRIDGE_INITIAL_SCAN makes the topic a copy of the account, and retention deletes the rows of blobs " +
			"that do not change"
		do := ", or, if consumers need only recent records, set BRIDGE_TOPIC_LIMITED=true"
		if j.plan.Copy == Repaired {
			why, do = "BRIDGE_ON_GAP=rescan compares all keys with the account, and retention deletes keys",
				", or set BRIDGE_ON_GAP=continue"
		}
		j.add(Unfit, j.settings.limit(), why, "run "+j.alter(retention, forever+","+retentionSize+"="+forever)+do)
	case kind == Records && j.plan.Table && !j.settings.Compacted() && j.settings.limit() != "":
		j.add(Risk, cleanupPolicy, "records make a table, and retention deletes the rows of blobs that do not change",
			j.alter(cleanupPolicy, "compact"))
	}
}

// times judges what becomes of records whose timestamps are in the past.
func (j *judge) times(now time.Time) {
	if j.settings[timestamps] == "LogAppendTime" {
		j.add(Risk, timestamps, "consumers see when a record came to Kafka, not when the blob changed",
			j.alter(timestamps, "CreateTime"))
		return // then records are as old as their arrival
	}
	for _, name := range []string{"message.timestamp.before.max.ms", "message.timestamp.difference.max.ms"} {
		if age, ok := Millis(j.settings[name]); ok && age < 100*365*24*time.Hour {
			j.add(Fault, name, fmt.Sprintf("the brokers reject events that are older than %s", age),
				j.alter(name, strconv.FormatInt(math.MaxInt64, 10)))
		}
	}
	// The ends of transactions have the time of writing, but protect only what is in one file with them:
	// brokers start a new file when times differ by segment.ms, and apply the retention before a transaction
	// ends, too.
	oldest := j.topic.Oldest
	if len(j.problems) > 0 && j.problems[0].Setting == retention {
		return
	}
	if age, deletes := j.settings.deletesAfter(); deletes && !oldest.IsZero() && now.Sub(oldest) > age {
		j.add(Risk, retention, fmt.Sprintf("records have the times of their events, and the oldest is of %s: "+
			"records older than %s may be deleted at once", oldest.UTC().Format(time.RFC3339), age),
			"keep them until consumers have read them: "+j.alter(retention, forever))
	}
}

// durability judges what a lost broker takes with it.
func (j *judge) durability(replicas int) {
	inSync, err := strconv.Atoi(j.settings[minInSync])
	switch {
	case err != nil:
	case inSync > replicas:
		j.add(Risk, minInSync, "it has "+plain.Count(replicas, "replica")+", so brokers before Kafka 4.0 write nothing",
			j.alter(minInSync, strconv.Itoa(max(1, replicas-1))))
	case replicas < 2:
		j.add(Risk, minInSync, "it has one replica, so a lost broker takes committed records with it",
			"use a replication factor of 3 where it matters")
	case inSync < 2:
		j.add(Risk, minInSync, "a record may be acknowledged while only one broker has it, and be lost with it",
			j.alter(minInSync, "2"))
	}
	if j.settings[unclean] == "true" {
		j.add(Risk, unclean, "a broker that lags may become the leader, and committed records be lost",
			j.alter(unclean, "false"))
	}
}

// size judges whether the largest records fit.
func (j *judge) size() {
	most, err := strconv.Atoi(j.settings[maxMessage])
	if err != nil {
		return
	}
	state := j.topic.Kind == State
	switch need := 2 * max(j.topic.Largest, j.topic.Grows); {
	case j.topic.Largest > most && state:
		j.add(Fault, maxMessage,
			fmt.Sprintf("progress takes %d bytes and can't be written", j.topic.Largest),
			j.alter(maxMessage, strconv.Itoa(2*need)))
	case j.topic.Largest > most:
		j.add(Fault, maxMessage,
			fmt.Sprintf("a record of the feed takes %d bytes and can't be written", j.topic.Largest),
			j.alter(maxMessage, strconv.Itoa(max(need, usualLimit))))
	case state && j.topic.Grows > 0 && need > most:
		j.add(Risk, maxMessage, fmt.Sprintf("half of that must hold the names of all topics, "+
			"which may take %d bytes; the bridge rejects further topics before", need/2),
			"lower BRIDGE_TOPIC_LIMIT, or run "+j.alter(maxMessage, strconv.Itoa(need)))
	}
}

// ErrForgets says that the settings of a topic let the last record of a key be deleted.
var ErrForgets = errors.New("does not keep every key")

// KeepsKeys returns ErrForgets if a topic does not keep the last record of every key: its retention deletes records.
func (a *Admin) KeepsKeys(ctx context.Context, names ...string) error {
	all, err := Read(ctx, a.admin(), names...)
	if err != nil {
		return err
	}
	for _, name := range names {
		if s := all[name]; s.limit() != "" {
			return fmt.Errorf("topic %s %w: it has cleanup.policy=%s and %s=%s", name, ErrForgets,
				s[cleanupPolicy], s.limit(), s[s.limit()])
		}
	}
	return nil
}

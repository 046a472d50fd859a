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

// bounded reports whether retention deletes records by their age or by the size of the topic.
func (s Settings) bounded() bool {
	return s.limit() != ""
}

// limit returns the setting by which retention deletes records, if it does.
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

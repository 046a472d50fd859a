package topics

import (
	"maps"
	"strings"
	"testing"
	"time"
)

// A topic's settings are judged by what its records need. Each case names the settings that differ from sound ones.
func TestJudge(t *testing.T) {
	const year, flags = "31536000000", "--bootstrap-server k:9092"
	const commands = "kafka-configs.sh " + flags
	now := time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	const ok = Severity(-1)
	since := func(oldest time.Time) Topic { return Topic{Kind: Records, Oldest: oldest} }
	state := func(limit string) Settings { return Settings{cleanupPolicy: "compact", maxMessage: limit} }
	for _, tc := range []struct {
		name     string
		topic    Topic
		settings Settings
		replicas int
		verdict  Severity
		do       string
	}{
		{"sound", since(now.AddDate(-9, 0, 0)), Settings{cleanupPolicy: "delete",
			retention: "-1", "message.timestamp.before.max.ms": "9223372036854775807"}, 3, ok, ""},
		{"retention deletes cursors", Topic{Kind: State}, Settings{cleanupPolicy: "compact, delete"}, 3, Fault,
			commands + " --alter --topic t --add-config cleanup.policy=compact"},
		{"cursors stay", Topic{Kind: State}, Settings{cleanupPolicy: "compact", retention: year}, 3, ok, ""},
		{"markers have no key", Topic{Kind: Records}, Settings{cleanupPolicy: "compact,delete"}, 3, Unfit,
			"set BRIDGE_RESOLVED_TO=topic (or off), or run " + commands},
		{"a topic of markers is compacted", Topic{Kind: Markers}, Settings{cleanupPolicy: "compact"}, 3, Unfit,
			"--topic t --add-config cleanup.policy=delete"},
		{"dead letters", Topic{Kind: DeadLetters}, Settings{cleanupPolicy: "compact"}, 3, ok, ""},
		{"fewer replicas than must be in sync", Topic{}, Settings{minInSync: "3"}, 2, Risk, "min.insync.replicas=1"},
		{"one replica", Topic{}, Settings{minInSync: "1"}, 1, Risk, "replication factor"},
		{"one in sync", Topic{}, Settings{minInSync: "1"}, 3, Risk, "min.insync.replicas=2"},
		{"unclean", Topic{}, Settings{unclean: "true"}, 3, Risk, "unclean.leader.election.enable=false"},
		{"time of arrival", since(now.AddDate(-9, 0, 0)), Settings{timestamps: "LogAppendTime", retention: year,
			"message.timestamp.before.max.ms": year}, 3, Risk, "message.timestamp.type=CreateTime"},
		{"brokers reject old events", Topic{}, Settings{"message.timestamp.before.max.ms": year}, 3, Fault,
			"message.timestamp.before.max.ms=9223372036854775807"},
		{"older brokers do so", Topic{}, Settings{"message.timestamp.difference.max.ms": year}, 3, Fault,
			"difference.max.ms"},
		{"retention deletes history", since(now.AddDate(-1, 0, -1)), Settings{retention: year}, 3, Risk,
			"retention.ms=-1"},
		{"history is younger", since(now.AddDate(-1, 0, 1)), Settings{retention: year}, 3, ok, ""},
		{"there is no history", since(time.Time{}), Settings{retention: year}, 3, ok, ""},
		{"progress fits", Topic{Kind: State, Largest: 10_000, Grows: 500_000}, state("1048588"), 3, ok, ""},
		{"topics will not fit", Topic{Kind: State, Largest: 10_000, Grows: 600_000}, state("1048588"), 3, Risk,
			"lower BRIDGE_TOPIC_LIMIT, or run " + commands +
				" --alter --topic t --add-config max.message.bytes=1200000"},
		{"progress does not fit", Topic{Kind: State, Largest: 10_000}, state("8192"), 3, Fault,
			"max.message.bytes=40000"},
		{"more than half is one topic's", Topic{Kind: State, Largest: 10_000}, state("12000"), 3, ok, ""},
		{"a record fits", Topic{Largest: 2000}, Settings{maxMessage: "2000"}, 3, ok, ""},
		{"a record does not fit", Topic{Largest: 2001}, Settings{maxMessage: "2000"}, 3, Fault,
			"max.message.bytes=1048588"},
	} {
		settings := Settings{cleanupPolicy: "delete", retention: "-1", minInSync: "2"}
		maps.Copy(settings, tc.settings)
		tc.topic.Name = "t"
		plan := Plan{Creation: Creation{Flags: flags}, Inline: true}
		problems := plan.Judge(&tc.topic, settings, tc.replicas, now)
		verdict, do := ok, ""
		for _, p := range problems {
			verdict, do = p.Severity, p.Do
		}
		if len(problems) > 1 || verdict != tc.verdict || !strings.Contains(do, tc.do) {
			t.Errorf("%s: %+v", tc.name, problems)
		}
	}
}

// A topic that holds no markers may be compacted, and compaction keeps history.
func TestJudgeTable(t *testing.T) {
	now := time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	records := Topic{Kind: Records, Name: "t", Oldest: now.AddDate(-9, 0, 0)}
	settings := Settings{cleanupPolicy: "compact", retention: "1000", minInSync: "2"}
	if problems := (&Plan{Beside: true}).Judge(&records, settings, 3, now); len(problems) > 0 {
		t.Errorf("%+v", problems)
	}
}

// Rows in a topic that retention empties are no table. Without a bound they are one, only a long one.
func TestJudgeTableWithoutCompaction(t *testing.T) {
	now := time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	for _, tc := range []struct {
		settings Settings
		table    bool
		problems int
	}{
		{Settings{cleanupPolicy: "delete", retention: "604800000"}, true, 1},
		{Settings{cleanupPolicy: "delete", retention: "-1", "retention.bytes": "1073741824"}, true, 1},
		{Settings{cleanupPolicy: "delete", retention: "-1", "retention.bytes": "-1"}, true, 0},
		{Settings{cleanupPolicy: "compact", retention: "604800000"}, true, 0},
		{Settings{cleanupPolicy: "delete", retention: "604800000"}, false, 0},
	} {
		tc.settings[minInSync] = "2"
		plan := Plan{Creation: Creation{Table: tc.table}, Beside: true}
		problems := plan.Judge(&Topic{Kind: Records, Name: "t"}, tc.settings, 3, now)
		if len(problems) != tc.problems || tc.problems > 0 && (problems[0].Severity != Risk ||
			!strings.HasSuffix(problems[0].Do, "--add-config cleanup.policy=compact")) {
			t.Errorf("%v, table %v: %+v", tc.settings, tc.table, problems)
		}
	}
}

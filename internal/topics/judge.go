package topics

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"time"
)

// Problem is a setting of a topic that does not fit what the bridge writes to the topic.
type Problem struct {
	Topic, Setting, Value string
	Why                   string
	Do                    string // what to do about it
	// Failed: the brokers reject records, or delete the state. Other problems put records at risk later.
	Failed bool
	// Lasting: the bridge must not start. Another attempt does not help.
	Lasting bool
}

// Detail says what does not fit, and why.
func (p *Problem) Detail() string {
	return fmt.Sprintf("topic %s has %s=%s: %s", p.Topic, p.Setting, p.Value, p.Why)
}

func (p *Problem) Error() string { return p.Detail() + "; " + p.Do }

// anyTool begins the commands where the brokers' address is not known.
const anyTool = "kafka-configs.sh --bootstrap-server <broker>"

// judge collects the problems of one topic.
type judge struct {
	topic    *Topic
	settings Settings
	tool     string
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
	j := &judge{topic: t, settings: s, tool: p.Tool}
	j.policy()
	if t.Kind == Records {
		j.times(now)
	}
	return j
}

func (j *judge) add(problem Problem, setting, why, do string) {
	problem.Topic, problem.Setting, problem.Value = j.topic.Name, setting, j.settings[setting]
	problem.Why, problem.Do = why, do
	j.problems = append(j.problems, problem)
}

// alter returns the command that changes a setting.
func (j *judge) alter(setting, value string) string {
	return fmt.Sprintf("%s --alter --topic %s --add-config %s=%s", cmp.Or(j.tool, anyTool), j.topic.Name, setting, value)
}

// policy judges which records the brokers remove, or reject because they have no key.
func (j *judge) policy() {
	switch {
	case j.settings[cleanupPolicy] == "":
	case j.topic.Kind == State && j.settings.deletes():
		j.add(Problem{Failed: true}, cleanupPolicy, "retention would delete progress", j.alter(cleanupPolicy, "compact"))
	case j.topic.Keyless && j.settings.Compacted():
		do := j.alter(cleanupPolicy, "delete")
		if j.topic.Kind == Records {
			do = "set BRIDGE_RESOLVED_TO=topic (or off), or run " + do
		}
		j.add(Problem{Failed: true, Lasting: true}, cleanupPolicy,
			"the brokers would reject resolved markers, which have no key, and the records beside them", do)
	}
}

// times judges what becomes of records whose timestamps are in the past.
func (j *judge) times(now time.Time) {
	if j.settings[timestamps] == "LogAppendTime" {
		j.add(Problem{}, timestamps, "consumers see when a record came to Kafka, not when the blob changed",
			j.alter(timestamps, "CreateTime"))
		return // then records are as old as their arrival
	}
	for _, name := range []string{"message.timestamp.before.max.ms", "message.timestamp.difference.max.ms"} {
		if age, ok := Millis(j.settings[name]); ok && age < 100*365*24*time.Hour {
			j.add(Problem{Failed: true}, name, fmt.Sprintf("the brokers reject events that are older than %s", age),
				j.alter(name, strconv.FormatInt(math.MaxInt64, 10)))
		}
	}
	if age, deletes := j.settings.deletesHistory(j.topic.Oldest, now); deletes {
		j.add(Problem{}, retention, fmt.Sprintf("records have the times of their events, and the oldest is of %s: "+
			"records older than %s may be deleted at once", j.topic.Oldest.UTC().Format(time.RFC3339), age),
			"keep them until consumers have read them: "+j.alter(retention, forever))
	}
}

// durability judges what a lost broker takes with it.
func (j *judge) durability(replicas int) {
	inSync, err := strconv.Atoi(j.settings[minInSync])
	switch {
	case err != nil:
	case inSync > replicas:
		j.add(Problem{Failed: true}, minInSync, fmt.Sprintf("it has %d replicas, so nothing can be written", replicas),
			j.alter(minInSync, strconv.Itoa(max(1, replicas-1))))
	case replicas < 2:
		j.add(Problem{}, minInSync, "it has one replica, so a lost broker takes committed records with it",
			"use a replication factor of 3 where it matters")
	case inSync < 2:
		j.add(Problem{}, minInSync, "a record may be acknowledged while only one broker has it, and be lost with that broker",
			j.alter(minInSync, "2"))
	}
	if j.settings[unclean] == "true" {
		j.add(Problem{}, unclean, "a broker that lags may become the leader, and committed records be lost",
			j.alter(unclean, "false"))
	}
}

// size judges whether the documents of the state fit.
func (j *judge) size() {
	most, err := strconv.Atoi(j.settings[maxMessage])
	if err != nil {
		return
	}
	switch need := 2 * max(j.topic.Largest, j.topic.Grows); {
	case j.topic.Largest > most:
		j.add(Problem{Failed: true}, maxMessage,
			fmt.Sprintf("progress takes %d bytes and can't be written", j.topic.Largest),
			j.alter(maxMessage, strconv.Itoa(2*need)))
	case need > most:
		j.add(Problem{}, maxMessage, fmt.Sprintf("half of that must hold the names of all topics, "+
			"which may take %d bytes; the bridge rejects further topics before", need/2),
			"lower BRIDGE_TOPIC_LIMIT, or run "+j.alter(maxMessage, strconv.Itoa(need)))
	}
}

package envelope

import (
	"fmt"
	"regexp"
	"strings"
	"sync"

	"blobfeed/source/ocf"
)

// Topics chooses the topic of each event. It is safe for concurrent use.
type Topics struct {
	template               string
	account                string
	byAccount, byContainer bool
	constant               string         // the topic of all, if it is one
	literal                string         // what every name begins with
	shape, own             *regexp.Regexp // of the names of all topics, and of those of this account

	mu    sync.RWMutex
	names map[origin]string
	owner map[string]origin
}

// origin is what the template is filled with, but for what it does not name.
type origin struct{ account, container string }

// fills matches the names that Azure allows for accounts and containers. Only these fill a template. They have no dot,
// so no container's topic is the topic of markers of another one. They have no underscore, which Kafka's internal
// topics begin with.
var fills = regexp.MustCompile(`^\$?[A-Za-z0-9-]+$`)

// filled matches such a name in the name of a topic, where a dollar sign is escaped.
const filled = `(_u0024_)?[A-Za-z0-9-]+`

// NewTopics returns the topics of a template: a name in which {account} and {container} stand for those of the event.
// Account is of events whose topic names none.
func NewTopics(template, account string) (*Topics, error) {
	rest := strings.NewReplacer("{account}", "", "{container}", "").Replace(template)
	if template == "" || strings.ContainsAny(rest, "{}") {
		return nil, fmt.Errorf("topic %q: want a name, which may contain {account} and {container}", template)
	}
	if strings.HasPrefix(template, "__") {
		return nil, fmt.Errorf("topic %q: names that begin with __ are Kafka's own", template)
	}
	t := &Topics{template: template, account: account, names: map[origin]string{}, owner: map[string]origin{}}
	t.byAccount, t.byContainer = strings.Contains(template, "{account}"), strings.Contains(template, "{container}")
	if !t.byAccount && !t.byContainer {
		t.constant = KafkaName(template)
	}
	t.literal, _, _ = strings.Cut(template, "{")
	var err error
	if t.shape, err = shapeOf(template); err == nil {
		t.own, err = shapeOf(strings.ReplaceAll(template, "{account}", account))
	}
	if err != nil {
		return nil, fmt.Errorf("topic %q: %w", template, err)
	}
	return t, nil
}

func shapeOf(template string) (*regexp.Regexp, error) {
	literals := strings.Split(strings.ReplaceAll(template, "{account}", "{container}"), "{container}")
	for i, literal := range literals {
		literals[i] = regexp.QuoteMeta(escapeTopic(literal))
	}
	return regexp.Compile("^" + strings.Join(literals, filled) + "$")
}

// Owns reports whether the name says that a topic is of this account: its literal text and, where the template names
// the account, that of this one.
func (t *Topics) Owns(name string) bool {
	return t.constant == name || t.constant == "" && t.Prefixed() && t.own.MatchString(name)
}

// Meets reports whether the events of some account and container go to the topic of that name. For a template that
// repeats a field it may wrongly say yes.
func (t *Topics) Meets(name string) bool {
	return t.constant == name || t.constant == "" && t.shape.MatchString(name)
}

// Apart rejects a template by which records could go to a topic that the bridge needs for itself; "" is none.
func (t *Topics) Apart(own string) error {
	if own == "" || !t.Meets(own) {
		return nil
	}
	return fmt.Errorf("records could go to %s, a topic of the bridge's own: choose another TOPIC or NAME", own)
}

// Prefixed reports whether the names of all topics begin with the same text. Without it a container can be named like
// any topic of the cluster.
func (t *Topics) Prefixed() bool { return t.literal != "" }

// Constant returns the topic if it is the same for all events.
func (t *Topics) Constant() (name string, ok bool) { return t.constant, t.constant != "" }

// Of returns the topic of an event. It fails if the template needs a container and the event has none, or if Name
// fails.
func (t *Topics) Of(ev *ocf.Event) (string, error) {
	if t.constant != "" {
		return t.constant, nil
	}
	container, _, ok := subject(ev.Subject)
	if !ok {
		return "", eventError(ev, fmt.Errorf("subject %.200q does not name a blob", ev.Subject))
	}
	name := account(ev.Topic)
	if name == "" {
		name = t.account
	}
	return t.Name(name, container)
}

// Name returns the topic of the events of a container. It fails if Azure does not allow the container's name, or if
// another container that the template keeps apart has the same topic: names are cut at 249 bytes.
func (t *Topics) Name(account, container string) (string, error) {
	o := origin{account, container}
	if !t.byAccount {
		o.account = ""
	}
	if !t.byContainer {
		o.container = ""
	}
	t.mu.RLock()
	name, ok := t.names[o]
	t.mu.RUnlock()
	if ok {
		return name, nil
	}
	if len(account)+len(container) > maxTopic { // Azure's have 24 and 63 bytes
		return "", fmt.Errorf("account %.100q and container %.100q are too long for Azure", account, container)
	}
	o = origin{strings.Clone(o.account), strings.Clone(o.container)} // a part of an event keeps its block in memory
	for what, part := range map[string]string{"account": o.account, "container": o.container} {
		if part != "" && !fills.MatchString(part) {
			return "", fmt.Errorf("%s %q: Azure does not allow this name", what, part)
		}
	}
	name = KafkaName(strings.NewReplacer("{account}", o.account, "{container}", o.container).Replace(t.template))
	t.mu.Lock()
	defer t.mu.Unlock()
	if other, taken := t.owner[name]; taken && other != o {
		return "", fmt.Errorf("topic %s: both %s and %s would go there with %q", name, other, o, t.template)
	}
	t.names[o], t.owner[name] = name, o
	return name, nil
}

func (o origin) String() string {
	return strings.Trim("account "+o.account+", container "+o.container, ", ")
}

// maxTopic is the maximum length of a topic's name, in bytes.
const maxTopic = 249

// escaped matches an escape. Such text in a name is itself escaped, so that escaping can be undone.
var escaped = regexp.MustCompile(`_u[0-9a-fA-F]{2,8}_`)

// KafkaName escapes the characters that a topic's name can't have, as CockroachDB does: _u, the rune in hexadecimal, _.
// It cuts the result at 249 bytes.
func KafkaName(s string) string {
	if s == "." || s == ".." {
		return strings.Repeat("_u002e_", len(s))
	}
	s = escapeTopic(s)
	return s[:min(len(s), maxTopic)]
}

// escapeTopic escapes a part of a topic's name.
func escapeTopic(s string) string {
	return escapeName(s, func(r rune) bool { return alphanumeric(r) || r == '_' || r == '.' || r == '-' })
}

// AvroName escapes the characters that a name in Avro can't have, as CockroachDB does.
func AvroName(s string) string {
	s = escapeName(s, func(r rune) bool { return alphanumeric(r) || r == '_' })
	if s != "" && s[0] >= '0' && s[0] <= '9' {
		s = escapeRune(rune(s[0])) + s[1:]
	}
	return s
}

func escapeName(s string, plain func(rune) bool) string {
	s = escaped.ReplaceAllStringFunc(s, func(match string) string {
		var b strings.Builder
		for _, r := range match {
			b.WriteString(escapeRune(r))
		}
		return b.String()
	})
	var b strings.Builder
	for _, r := range s {
		if plain(r) {
			b.WriteRune(r)
		} else {
			b.WriteString(escapeRune(r))
		}
	}
	return b.String()
}

func alphanumeric(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
}

func escapeRune(r rune) string {
	if r > 0xffff {
		return fmt.Sprintf("_u%08x_", r)
	}
	return fmt.Sprintf("_u%04x_", r)
}

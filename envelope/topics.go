package envelope

import (
	"fmt"
	"strings"
	"sync"

	"blobfeed/source/ocf"
)

// Topics gives each event its topic. It is safe for concurrent use.
type Topics struct {
	template               string
	account                string
	byAccount, byContainer bool
	constant               string // the topic of all, if it is one

	mu    sync.RWMutex
	names map[origin]string
	owner map[string]origin
}

// origin is what the template is filled with, but for what it does not name.
type origin struct{ account, container string }

// NewTopics returns the topics of a template: a name in which {account} and {container} stand for those of the event.
// Account is of events whose topic names none.
func NewTopics(template, account string) (*Topics, error) {
	rest := strings.NewReplacer("{account}", "", "{container}", "").Replace(template)
	if template == "" || strings.ContainsAny(rest, "{}") {
		return nil, fmt.Errorf("topic %q: want a name, in which {account} and {container} may stand", template)
	}
	t := &Topics{template: template, account: account, names: map[origin]string{}, owner: map[string]origin{}}
	t.byAccount, t.byContainer = strings.Contains(template, "{account}"), strings.Contains(template, "{container}")
	if !t.byAccount && !t.byContainer {
		t.constant = KafkaName(template)
	}
	return t, nil
}

// Constant returns the topic if it is the same for all events.
func (t *Topics) Constant() (name string, ok bool) { return t.constant, t.constant != "" }

// Of returns the topic of an event. It is an error if the event names no container where one is needed, or Name fails.
func (t *Topics) Of(ev *ocf.Event) (string, error) {
	if t.constant != "" {
		return t.constant, nil
	}
	container, _, ok := subject(ev.Subject)
	if !ok {
		return "", eventError(ev, fmt.Errorf("subject %.200q names no blob", ev.Subject))
	}
	name := account(ev.Topic)
	if name == "" {
		name = t.account
	}
	return t.Name(name, container)
}

// Name returns the topic of the events of a container. It is an error if that is the topic of other events, too, that
// the template means to keep apart: names are cut at 249 bytes, and what is left may be the same.
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
		return "", fmt.Errorf("account %.100q and container %.100q are too long for names of Azure's", account,
			container)
	}
	o = origin{strings.Clone(o.account), strings.Clone(o.container)} // a part of an event keeps its block in memory
	name = KafkaName(strings.NewReplacer("{account}", o.account, "{container}", o.container).Replace(t.template))
	t.mu.Lock()
	defer t.mu.Unlock()
	if other, taken := t.owner[name]; taken && other != o {
		return "", fmt.Errorf("topic %s: both %s and %s go there by %q", name, other, o, t.template)
	}
	t.names[o], t.owner[name] = name, o
	return name, nil
}

func (o origin) String() string {
	return strings.Trim("account "+o.account+", container "+o.container, ", ")
}

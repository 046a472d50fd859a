package config

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"blobfeed/internal/storageaccount"
)

const ofAccount = "{account}"

// writer is a bridge, and the topic, or the template of topics, that its account fills.
type writer struct {
	*Config
	topic string // "" if the settings do not say which account it is
}

// rejectSharedTopics rejects bridges that would write to the topic of another one: both would write resolved markers
// that hold for one of them.
func (f *Fleet) rejectSharedTopics() {
	var all []writer
	same := map[string][]writer{} // by template, and by topic
	for _, c := range f.Bridges {
		w := writer{c, c.Topic}
		if strings.Contains(c.Topic, ofAccount) {
			if w.topic = ""; c.account() != "" {
				w.topic = strings.ReplaceAll(c.Topic, ofAccount, c.account())
			}
			same[c.Topic] = append(same[c.Topic], w)
		}
		if w.topic != "" {
			same[w.topic] = append(same[w.topic], w)
		}
		all = append(all, w)
	}
	for _, w := range all {
		for _, other := range slices.Concat(same[w.topic], same[w.Topic]) {
			if problem := w.shares(other); problem != "" && f.Rejected[w.Name] == nil {
				f.Rejected[w.Name] = []error{w.Problem("TOPIC", "bridge %s %s", other.Name, problem)}
			}
		}
	}
	f.Bridges = slices.DeleteFunc(f.Bridges, func(c *Config) bool { return f.Rejected[c.Name] != nil })
}

// shares returns what is wrong if both may write to one topic, and the settings do not permit that.
func (w writer) shares(other writer) string {
	shared := w.TopicShared && other.TopicShared
	switch known := w.topic != "" && other.topic != ""; {
	case w.Name == other.Name, known && w.topic != other.topic:
		return ""
	case w.feed() == other.feed():
		return "reads the same feed and writes to the same topic " + w.Topic + ": remove one, or give it another topic"
	case shared:
		return ""
	case known:
		return fmt.Sprintf("writes to the same topic %s: give each bridge its own, for example with %s, "+
			"or set %s=true for all of them", w.Topic, ofAccount, variable("TOPIC_SHARED"))
	}
	// The records of a directory name their account, which the settings need not.
	return fmt.Sprintf("may write to the same topic, because the account of a directory is unknown before it is read: "+
		"set %s for both, or %s=true", variable("SOURCE_ACCOUNT"), variable("TOPIC_SHARED"))
}

// feed returns the address of the feed.
func (c *Config) feed() string {
	return cmp.Or(strings.TrimRight(c.SourceURL, "/"), string(c.SourceConnectionString))
}

// account returns the name of the account, or, of an address that does not have it, the address; "" of a directory
// without SOURCE_ACCOUNT.
func (c *Config) account() string {
	name, at := c.SourceAccount, c.SourceURL
	if connection := string(c.SourceConnectionString); connection != "" {
		name = cmp.Or(name, storageaccount.Part(connection, "AccountName"))
		at = cmp.Or(storageaccount.Part(connection, "BlobEndpoint"), at)
	}
	u, err := url.Parse(at)
	if err == nil && u.Scheme != "file" {
		name = cmp.Or(name, storageaccount.Name(u.Hostname(), u.Path), u.Hostname())
	}
	return strings.ToLower(name)
}

package check

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"blobfeed/bridge"
	"blobfeed/envelope"
	"blobfeed/internal/kafka"
	"blobfeed/internal/topics"
	"blobfeed/offsets"
	"blobfeed/source"
	"blobfeed/source/dir"
	"blobfeed/source/inventory"
)

// listed is a storage account of which only the containers are listed, a name on each page.
type listed struct {
	inventory.Store
	names []string
	err   error
}

func (a listed) Containers(_ context.Context, marker string) (*inventory.Containers, error) {
	at := 0
	_, _ = fmt.Sscan(marker, &at)
	if a.err != nil {
		return nil, a.err
	}
	page := &inventory.Containers{Names: a.names[at : at+1]}
	if at+1 < len(a.names) {
		page.Marker = fmt.Sprint(at + 1)
	}
	return page, nil
}

// Before the first start a template's topics are counted by the containers that the settings select.
func TestContainersAreCounted(t *testing.T) {
	few := []string{"a", "b", "c", "logs"}
	for _, tc := range []struct {
		name   string
		store  inventory.Store
		limit  int
		status Status
		detail string
	}{
		{"few", listed{names: few}, 10, OK, "the settings select 3 containers of the account: 3 topics"},
		{"near the limit", listed{names: few}, 3, Warning, "3 topics of at most 3 (BRIDGE_TOPIC_LIMIT)"},
		{"many", listed{names: make([]string, maxContainers+1)}, 10, OK,
			"more than 100,000 containers of the account: 1 topic"},
		{"not permitted", listed{err: errors.New("403")}, 10, OK, "are not counted, which run does not need: 403"},
		{"a directory", nil, 10, "", ""},
	} {
		names, err := envelope.NewTopics("blobs.{container}", "")
		if err != nil {
			t.Fatal(err)
		}
		ck := &checker{Findings: new(Findings), bridge: &bridge.Options{
			Feed:   bridge.Feed{Inventory: tc.store, Filter: envelope.Filter{ExcludeContainers: []string{"logs"}}},
			Topics: bridge.Topics{Names: names, Create: topics.Creation{Limit: tc.limit}},
		}}
		ck.containers(t.Context())
		if tc.status == "" {
			if len(*ck.Findings) > 0 {
				t.Errorf("%s: %+v", tc.name, *ck.Findings)
			}
			continue
		}
		if f := (*ck.Findings)[0]; f.Status != tc.status || !strings.Contains(f.Detail, tc.detail) {
			t.Errorf("%s: %+v", tc.name, f)
		}
	}
}

// Characters that Kafka does not allow are escaped, as in CockroachDB: check names the topic.
func TestCheckNamesTheEscapedTopic(t *testing.T) {
	feed, err := dir.New(recorded)
	if err != nil {
		t.Fatal(err)
	}
	for template, want := range map[string]string{
		"a b": "the topic is called a_u0020_b", "a/{container}": "the topic is called a_u002f_container",
		"a.{container}": "", "a_b": "",
	} {
		names, err := envelope.NewTopics(template, "account")
		if err != nil {
			t.Fatal(err)
		}
		o := bridge.Options{Topics: bridge.Topics{Names: names}}
		o.Feed.Source = source.New(feed, source.Options{})
		o.Records.Frozen = map[string]string{offsets.FrozenTopic: template}
		found, err := Run(t.Context(), &Bridge{Options: &o, Kafka: &kafka.Client{}}, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		says := ""
		for _, f := range found {
			if f.Check == "topic" && f.Status == Warning {
				says += f.Detail
			}
		}
		if want == "" && says != "" || !strings.HasSuffix(says, want) {
			t.Errorf("%s: %+v", template, found)
		}
	}
}

package envelope

import (
	"strings"
	"testing"

	"blobfeed/source/ocf"
)

func TestTopics(t *testing.T) {
	ev := made()[0] // of simacct, photos
	noAccount := ev
	noAccount.Topic = ""
	web := ev
	web.Subject = subjectPrefix + "$web/blobs/index.html"
	for _, c := range []struct {
		template string
		ev       *ocf.Event
		want     string
	}{
		{"blob-changes", &ev, "blob-changes"},
		{"blob changes", &ev, "blob_u0020_changes"},
		{"{container}", &ev, "photos"},
		{"{container}", &web, "_u0024_web"},
		{"feed.{account}.{container}", &ev, "feed.simacct.photos"},
		{"feed.{account}.{container}", &noAccount, "feed.given.photos"},
		{"{account}-{account}", &web, "simacct-simacct"},
	} {
		topics, err := NewTopics(c.template, "given")
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if got, err := topics.Of(c.ev); got != c.want || err != nil {
				t.Errorf("%s: %s, %v", c.template, got, err)
			}
		}
	}
	for _, bad := range []string{"", "{", "a}", "{blob}", "{{container}", "__consumer_offsets"} {
		if _, err := NewTopics(bad, ""); err == nil {
			t.Errorf("%q is taken for a template", bad)
		}
	}
	topics, _ := NewTopics("{container}", "")
	if _, err := topics.Of(&ocf.Event{Subject: "?", ID: "id-1"}); err == nil || !strings.Contains(err.Error(), "id-1") {
		t.Errorf("%v", err)
	}
}

// What a template can become is known before there is a container: names that Azure allows hold no dot.
func TestTemplateMeets(t *testing.T) {
	for _, c := range []struct {
		template, name string
		meets          bool
	}{
		{"blobs", "blobs", true},
		{"blobs", "blobs.offsets", false},
		{"blobs.{container}", "blobs.offsets", true},
		{"blobs.{container}", "blobs.dlq", true},
		{"blobs.{container}", "blobs-eu.offsets", false},
		{"blobs{container}.offsets", "blobs-eu.offsets", true},
		{"{container}", "blobs.offsets", false},
		{"{container}", "offsets", true},
		{"{account}.{container}", "blobs.dlq", true},
		{"{account}.{container}", "blobs.eu.dlq", false},
		{"{container}.{container}", "blobs.dlq", true}, // it errs
		{"b lobs.{container}", "b_u0020_lobs.dlq", true},
		{"{container}", "_u0024_web", true},
		{"{container}", "__consumer_offsets", false},
	} {
		topics, err := NewTopics(c.template, "")
		if err != nil {
			t.Fatal(err)
		}
		if have := topics.Meets(c.name); have != c.meets {
			t.Errorf("%s meets %s: %t", c.template, c.name, have)
		}
	}
}

// The names of existing topics say whether they are of this account, if the template begins with a text.
func TestTopicsOfAnAccount(t *testing.T) {
	for _, c := range []struct {
		template, name string
		owns           bool
	}{
		{"all", "all", true},
		{"all", "other", false},
		{"blobs.{account}.{container}", "blobs.mine.photos", true},
		{"blobs.{account}.{container}", "blobs.other.photos", false},
		{"blobs.{container}", "blobs.photos", true},
		{"{container}", "photos", false},
		{"{account}.{container}", "mine.photos", false},
	} {
		topics, err := NewTopics(c.template, "mine")
		if err != nil {
			t.Fatal(err)
		}
		if have := topics.Owns(c.name); have != c.owns {
			t.Errorf("%s owns %s: %t", c.template, c.name, have)
		}
	}
}

// No container has the topic of another one's markers, nor one of Kafka's own: its name would hold what Azure allows
// in none.
func TestContainersOfNoAccount(t *testing.T) {
	for _, container := range []string{"photos.resolved", "__consumer_offsets", "a/b", "a b", "$", "a$"} {
		topics, err := NewTopics("{container}", "")
		if err != nil {
			t.Fatal(err)
		}
		ev := &ocf.Event{Subject: subjectPrefix + container + "/blobs/x"}
		if name, err := topics.Of(ev); err == nil {
			t.Errorf("container %q has topic %s", container, name)
		}
	}
}

func TestTopicCollisions(t *testing.T) {
	long := strings.Repeat("x", maxTopic)
	for _, c := range []struct {
		template string
		a, b     [2]string
		collide  bool
	}{
		{"{account}{container}", [2]string{"ab", "c"}, [2]string{"a", "bc"}, true},
		{"{account}.{container}", [2]string{"ab", "c"}, [2]string{"a", "bc"}, false},
		{"{account}", [2]string{"a", "c"}, [2]string{"a", "d"}, false}, // on purpose
		{"all", [2]string{"a", "c"}, [2]string{"b", "d"}, false},
		{long + "{container}", [2]string{"a", "c"}, [2]string{"a", "d"}, true}, // cut
		{"{container}", [2]string{"a", "c"}, [2]string{"b", "c"}, false},
	} {
		topics, err := NewTopics(c.template, "")
		if err != nil {
			t.Fatal(err)
		}
		first, err := topics.Name(c.a[0], c.a[1])
		if err != nil || len(first) > maxTopic {
			t.Errorf("%s: %s, %v", c.template, first, err)
		}
		if _, err := topics.Name(c.b[0], c.b[1]); (err != nil) != c.collide ||
			err != nil && !strings.Contains(err.Error(), first) {
			t.Errorf("%s: %v", c.template, err)
		}
		if again, err := topics.Name(c.a[0], c.a[1]); again != first || err != nil {
			t.Errorf("%s: %s, %v", c.template, again, err)
		}
	}
}

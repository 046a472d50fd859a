//go:build integration

package integration

import (
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/internal/testing/feedsim"
)

// Without a literal prefix, a bridge writes to a topic that holds nothing but an aborted transaction, as an instance
// that ended before its first commit leaves it, and not to those of another bridge, unless it is told to.
func TestForeignTopics(t *testing.T) {
	t.Parallel()
	ctx, dir := t.Context(), t.TempDir()
	if err := feedsim.Write(ctx, feedsim.Dir(dir), feedsim.Spec{EventsPerSegment: 50, Segments: 1}, nil); err != nil {
		t.Fatal(err)
	}
	brokers := shared.KafkaBrokers
	name, _ := names(t, brokers, -1)
	cl := client(t, brokers, kgo.TransactionalID(name+"-stranger"))
	adm := kadm.NewClient(cl)
	if _, err := adm.CreateTopic(ctx, partitions, -1, nil, "photos"); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if _, err := adm.DeleteTopics(ctx, "photos", "backups", "_u0024_web"); err != nil {
			t.Error(err)
		}
	}()
	if err := cl.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	if err := cl.ProduceSync(ctx, &kgo.Record{Topic: "photos"}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	if err := cl.EndTransaction(ctx, kgo.TryAbort); err != nil {
		t.Fatal(err)
	}
	settings := []string{
		"TOPIC={container}", "EVENTS=all", "KAFKA_BROKERS=" + strings.Join(brokers, ","),
		"SOURCE_URL=" + fileURL(t, dir),
	}
	runOnce(t, append(settings, "NAME="+name)...)
	// Without a state that claims them, nobody knows whose records they are.
	if code := start(t, []string{"reset", "--yes"}, append(settings, "NAME="+name)...).wait(t, time.Minute); code != 0 {
		t.Fatalf("reset ended with %d", code)
	}
	other := append(settings, "NAME="+name+"-other")
	p := start(t, []string{"run", "--once"}, other...)
	if code := p.wait(t, time.Minute); code != 1 ||
		!strings.Contains(p.log.String(), "it holds records, and not of this bridge") {
		t.Errorf("exit code %d:\n%s", code, p.log)
	}
	runOnce(t, append(other, "TOPIC_ADOPT=true")...)
}

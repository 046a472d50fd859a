package bridge

import (
	"bytes"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"blobfeed/envelope"
)

// The topics of a hundred containers, which two blocks are the first of, are created with a request for each block, and
// those of their markers with another one. All keep history, and the log says how many there are.
func TestTopicsOfManyContainers(t *testing.T) {
	t.Parallel()
	const n = 100
	c := broker(t)
	var requests atomic.Int32
	c.ControlKey(int16(kmsg.CreateTopics), func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		for _, topic := range req.(*kmsg.CreateTopicsRequest).Topics {
			if strings.HasPrefix(topic.Topic, "container-") {
				requests.Add(1)
				break
			}
		}
		return nil, nil, false
	})
	var log bytes.Buffer
	o, _ := over(t, c, containers(n))
	o.Topics, o.Markers = byTemplate(t, "{container}"), envelope.MarkersTopic
	o.Log = slog.New(slog.NewTextHandler(&log, nil))
	must(t, runOnce(t, o))
	if have := requests.Load(); have != 4 {
		t.Errorf("%d requests", have)
	}
	made := created(t, c)
	if len(made) != 2*n {
		t.Errorf("%d topics", len(made))
	}
	if data, _ := consumeAll(t, c, made, promises()...); data != n {
		t.Errorf("%d records", data)
	}
	all, err := admin(t, c).DescribeTopicConfigs(t.Context(), made...)
	must(t, err)
	for _, topic := range all {
		for _, setting := range topic.Configs {
			if setting.Key == "retention.ms" && setting.MaybeValue() != "-1" {
				t.Errorf("topic %s has retention.ms=%s", topic.Name, setting.MaybeValue())
			}
		}
	}
	if !strings.Contains(log.String(), `msg="topics created" topics=80 since_start=100`) {
		t.Errorf("log: %.2000s", &log)
	}
}

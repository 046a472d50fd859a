package topics

import (
	"net"
	"strconv"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"blobfeed/internal/testing/fakebroker"
)

// A topic whose partitions lack replicas or a leader is named, with what to do; what brokers do not say is no error.
func TestUnwritable(t *testing.T) {
	c := fakebroker.New(t, kfake.NumBrokers(2))
	adm := fakebroker.Admin(t, c)
	for name, least := range map[string]string{"fine": "1", "short": "2"} {
		settings := map[string]*string{minInSync: &least}
		if _, err := adm.CreateTopic(t.Context(), 2, 1, settings, name); err != nil {
			t.Fatal(err)
		}
	}
	asked := 0
	c.ControlKey(int16(kmsg.DescribeConfigs), func(kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		asked++
		return nil, nil, false
	})
	if err := Unwritable(t.Context(), adm, true, "fine", "missing"); err != nil {
		t.Error(err)
	}
	asked = 0
	const short = "topic short takes no records: partition 0 has 1 replica in sync, and min.insync.replicas is 2: " +
		"start the missing brokers, or lower the setting"
	if err := Unwritable(t.Context(), adm, true, "missing", "short", "fine"); err == nil || err.Error() != short {
		t.Errorf("%v", err)
	}
	if asked != 1 {
		t.Errorf("asked for the settings of two topics with %d requests", asked)
	}
	asked = 0
	if err := Unwritable(t.Context(), adm, false, "short"); err != nil || asked > 0 {
		t.Errorf("with all of its replicas: %v, asked for settings %d times", err, asked)
	}
	answer := kmsg.NewMetadataResponseTopic()
	c.ControlKey(int16(kmsg.Metadata), func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		resp := req.ResponseKind().(*kmsg.MetadataResponse)
		for i, addr := range c.ListenAddrs() {
			host, port, _ := net.SplitHostPort(addr)
			n, _ := strconv.Atoi(port)
			resp.Brokers = append(resp.Brokers, kmsg.MetadataResponseBroker{NodeID: int32(i), Host: host, Port: int32(n)})
		}
		resp.Topics = append(resp.Topics, answer)
		return resp, nil, true
	})
	const leader = "topic fine takes no records: partition 0 has no leader: start its brokers"
	lost := kmsg.MetadataResponseTopicPartition{Leader: -1}
	behind := kmsg.MetadataResponseTopicPartition{Replicas: []int32{0, 1}, ISR: []int32{0}}
	for _, tc := range []struct {
		topic     string
		partition kmsg.MetadataResponseTopicPartition
		want      string
	}{{"fine", lost, leader}, {"short", behind, short}, {"fine", behind, ""}} {
		answer.Topic, answer.Partitions = &tc.topic, []kmsg.MetadataResponseTopicPartition{tc.partition}
		text := ""
		if err := Unwritable(t.Context(), fakebroker.Admin(t, c), false, tc.topic); err != nil {
			text = err.Error()
		}
		if text != tc.want {
			t.Errorf("%s: %q, want %q", tc.topic, text, tc.want)
		}
	}
}

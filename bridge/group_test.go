package bridge

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"blobfeed/internal/plain"
)

// A broker that does not answer any more does not hold up a stop.
func TestStopWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	c := broker(t)
	o, r := options(t, c, realFeed)
	o.Once, o.Pace.Shutdown = false, 100*time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- New(o).Run(ctx, t.Context()) }()
	r.await(t, func(c Commit) bool { return c.Read == realEvents })
	silence := t.Context()
	c.ControlKey(int16(kmsg.LeaveGroup), func(kmsg.Request) (kmsg.Response, error, bool) {
		c.SleepControl(func() { <-silence.Done() })
		return nil, nil, false
	})
	cancel()
	select {
	case err := <-ended:
		must(t, err)
	case <-time.After(20 * time.Second):
		t.Fatal("it waits for the group")
	}
}

// Who may not join the group is told so, also by a run that nobody looks after.
func TestGroupRefuses(t *testing.T) {
	t.Parallel()
	for _, refusal := range []*kerr.Error{kerr.GroupAuthorizationFailed, kerr.InvalidSessionTimeout} {
		t.Run(refusal.Message, func(t *testing.T) {
			t.Parallel()
			c := broker(t)
			c.ControlKey(int16(kmsg.JoinGroup), func(req kmsg.Request) (kmsg.Response, error, bool) {
				c.KeepControl()
				resp := req.ResponseKind().(*kmsg.JoinGroupResponse)
				resp.ErrorCode = refusal.Code
				return resp, nil, true
			})
			o, _ := options(t, c, realFeed)
			err := runOnce(t, o)
			var settings *plain.SettingsError
			if isSettings := errors.As(err, &settings); isSettings != (refusal == kerr.InvalidSessionTimeout) ||
				isSettings && !strings.Contains(err.Error(), "session timeout") ||
				!isSettings && !errors.Is(err, refusal) {
				t.Errorf("err = %v", err)
			}
		})
	}
}

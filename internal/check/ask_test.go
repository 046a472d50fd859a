package check

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/twmb/franz-go/pkg/kmsg"

	"blobfeed/internal/kafka"
)

// silent is a broker that takes requests and answers none.
type silent struct{}

func (silent) Request(ctx context.Context, _ kmsg.Request) (kmsg.Response, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// A check is one line, also of a broker that does not answer.
func TestNoAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, err := ask[*kmsg.ApiVersionsResponse](t.Context(), silent{}, versionsRequest())
		if err == nil || !strings.HasPrefix(err.Error(), "no answer in time: ") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q", err)
		}
		if do := (&checker{client: &kafka.Client{}}).advice(err); do != silentBroker {
			t.Errorf("what to do: %q", do)
		}
	})
}

package setup

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/bridge"
	"blobfeed/internal/config"
	"blobfeed/internal/plain"
	"blobfeed/internal/status"
	"blobfeed/offsets"
)

// StateTimeout bounds one read of the state.
const StateTimeout = 30 * time.Second

// ErrSilent is the cause of a context that ended while brokers were asked.
var ErrSilent = errors.New("the brokers did not answer in time")

// State returns a reader of the state of the bridge that the settings name, and a function that closes it.
func State(c *config.Config) (r *status.Reader, done func(), err error) {
	client, err := Kafka(c, c.Name+"-cli", 1000)
	if err != nil {
		return nil, nil, &bridge.SettingsError{Problem: err.Error()}
	}
	opts, err := client.Options()
	if err != nil {
		return nil, nil, &bridge.SettingsError{Problem: err.Error()}
	}
	cl, err := kgo.NewClient(opts...)
	if err != nil {
		return nil, nil, &bridge.SettingsError{Problem: fmt.Sprintf("creating the Kafka client: %v", err)}
	}
	return &status.Reader{Name: c.Name, Topic: plain.StateTopic(c.Name), Admin: kadm.NewClient(cl), Client: opts,
		Now: time.Now}, cl.Close, nil
}

// InState calls f with the state of the bridge that the settings name, and the reader that read it.
func InState(
	ctx context.Context, c *config.Config, f func(context.Context, *status.Reader, *offsets.State) error,
) error {
	r, done, err := State(c)
	if err != nil {
		return err
	}
	defer done()
	ctx, cancel := context.WithTimeoutCause(ctx, StateTimeout, ErrSilent)
	defer cancel()
	s, err := r.State(ctx)
	if err != nil {
		return err
	}
	return f(ctx, r, s)
}

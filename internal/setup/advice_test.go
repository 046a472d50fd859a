package setup

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"blobfeed/bridge/pipeline"
	"blobfeed/internal/config"
	"blobfeed/internal/history"
	"blobfeed/internal/kafka"
	"blobfeed/internal/plain"
	"blobfeed/internal/status"
	"blobfeed/internal/topics"
	"blobfeed/offsets"
	"blobfeed/source"
)

// What the engine reports says what can be done about it, once, and proposes only what is not in force already.
func TestAdvised(t *testing.T) {
	account, copied := &config.Config{SourceURL: "https://a", OnError: "fail"}, &config.Config{SourceURL: "file:///feed"}
	letters := &config.Config{OnError: "dead_letter"}
	gap := history.GapError{At: source.SegmentAt(time.Unix(0, 0))}
	recorded := gap
	recorded.Recorded = true
	event := func(err error) error { return &pipeline.EventError{Blob: "log/x.avro", Offset: 120, Err: err} }
	damage := &source.DamageError{Blob: "log/x.avro", Offset: 120, Kind: source.BadBytes}
	var plan topics.Plan
	plan.Limit = 5
	for _, tc := range []struct {
		of  *config.Config
		err error
		do  string
	}{
		{account, &gap, "set BRIDGE_ON_GAP=continue"},
		{account, &recorded, "bridge scan --sweep"},
		{copied, &recorded, "if there is a copy"},
		{copied, fmt.Errorf("parsing meta/segments.json: %w", &json.SyntaxError{}), "copy the container"},
		{copied, fmt.Errorf("reading idx/segments/a/meta.json: %w", source.ErrNotFound), "copy the container"},
		{account, event(&pipeline.TooLargeError{Topic: "t"}), "raise it, or set BRIDGE_ON_ERROR=dead_letter"},
		{account, event(errors.New("no blob")), "bridge dump --at 120 log/x.avro shows it; BRIDGE_ON_ERROR=dead_letter"},
		{account, event(plan.WithinLimit("t", 6)), "raise BRIDGE_TOPIC_LIMIT"},
		{account, damage, "bridge dump --at 120 log/x.avro shows whether"},
		{letters, damage, ""},
		{account, offsets.ErrLapsed, "if this happens again, raise BRIDGE_SESSION_TIMEOUT"},
		{account, status.ErrSilent, kafka.Silent},
		{account, errors.New("reaching the brokers: the brokers did not answer in time"), kafka.Silent},
		{account, errors.New("unheard of"), ""},
	} {
		err := Advised(tc.of, &kafka.Client{}, fmt.Errorf("lease 1: %w", tc.err))
		_, do := plain.SplitRemedy(err)
		if !strings.HasPrefix(do, tc.do) || tc.do == "" && do != "" || do != "" && strings.Count(err.Error(), do) != 1 {
			t.Errorf("%v: %q, want %q", tc.err, do, tc.do)
		}
	}
	if err := Advised(account, &kafka.Client{}, nil); err != nil {
		t.Error(err)
	}
}

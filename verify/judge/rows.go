package judge

import (
	"context"
	"time"

	"blobfeed/envelope"
	"blobfeed/offsets"
	"blobfeed/source"
	"blobfeed/verify"
)

// initialScan returns the initial scan, if the state still has it: later scans replace it.
func (s *progressState) initialScan() *offsets.Scan {
	if s == nil || s.Frontier.Scan == nil || !s.Frontier.Scan.Initial {
		return nil
	}
	return s.Frontier.Scan
}

// scansOnly reports whether the bridge delivers no event.
func (s *progressState) scansOnly() bool {
	scan := s.initialScan()
	return scan != nil && scan.Only
}

// knowScan passes the validator what the state says of the initial scan.
func (s *run) knowScan() {
	if scan := s.state.initialScan(); scan != nil {
		s.checks.scan.Initial(scan.ID, scan.Listed)
	}
}

// knowScans passes the validator the scans that there can be. A later scan replaces those before it in the state, and
// then any may have been.
func (v *verification) knowScans(ctx context.Context, s *run) error {
	if s.state == nil || s.checks.scan.Checked() == 0 {
		return nil
	}
	now, err := v.cluster.state(ctx, s.state.topic) // a scan may have begun since the state was read
	if err != nil || now == nil || now.Frontier == nil {
		return err
	}
	switch scan := now.Frontier.Scan; {
	case scan == nil:
		s.checks.scan.Known()
	case scan.Initial:
		s.checks.scan.Known(scan.ID)
	}
	return nil
}

// begun returns when the first segment began that the bridge has delivered after an initial scan; zero without such a
// scan.
func (v *verification) begun(ctx context.Context, s *subject, state *progressState) (time.Time, error) {
	text := ""
	if scan := state.initialScan(); scan != nil && scan.Begin != (source.Segment{}) {
		return scan.Begin.Time(), nil
	} else if scan != nil {
		text = scan.Updated
	} else if err := s.read(ctx, s.from, s.to, func(r verify.Record) (more bool) {
		text = max(text, r.BeforeFeed()) // rows are the first records of their partition
		return false
	}); err != nil {
		return time.Time{}, err
	}
	if text == "" {
		return time.Time{}, nil
	}
	updated, err := envelope.ParseTimestamp(text)
	return time.Unix(0, updated.Wall+int64(v.ResolvedSlack)), err
}

// barred reports whether a marker would have been below the end of the initial scan's listing.
func (s *run) barred(at envelope.Timestamp) bool {
	listed, err := envelope.ParseTimestamp(s.checks.scan.Listed())
	return err == nil && at.Wall < listed.Wall+int64(s.pass.v.ResolvedSlack)
}

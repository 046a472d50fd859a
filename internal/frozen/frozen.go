// Package frozen compares settings with those that a stored state was made with: some must not change while records
// exist, since they choose the topic or the partition of a key, or what a reader must know.
package frozen

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"blobfeed/internal/plain"
	"blobfeed/offsets"
	"blobfeed/source"
)

// Settings are those of a bridge that a stored state must fit.
type Settings struct {
	Bridge  string            // its name
	Feed    string            // identity of what it reads
	Values  map[string]string // of settings, by name
	Follows map[string]string // for those that the user left out: the setting that chose their value
	Scan    string            // whether the first start lists the account: no, yes or only
}

// Fit rejects a state that other settings, or another feed, have written.
func (o *Settings) Fit(s *offsets.State) error {
	feed := s.Frontier.Feed
	restart := fmt.Sprintf("or restart from scratch with bridge reset, or with another BRIDGE_NAME and "+
		"BRIDGE_TOPIC (the state is in topic %s)", plain.StateTopic(o.Bridge))
	fresh := !s.Written()
	if fresh {
		restart = fmt.Sprintf("or, since no record is written yet, stop the bridge, run BRIDGE_NAME=%s bridge reset "+
			"--yes, and start it again", o.Bridge)
	}
	if feed != o.Feed {
		return plain.WithRemedy(plain.SettingsErrorf("BRIDGE_SOURCE_URL names feed %s, but %s has progress on feed %s",
			o.Feed, o.Bridge, feed), "set it back, "+moved(feed, o.Feed)+restart)
	}
	switch changed := o.changed(s.Frontier.Settings, fresh); len(changed) {
	case 0:
		return o.scanIsDue(s.Frontier)
	case 1:
		return plain.WithRemedy(&plain.SettingsError{Problem: changed[0]}, "set it back, "+restart)
	default:
		return plain.WithRemedy(&plain.SettingsError{Problem: strings.Join(changed, "; ")}, "set them back, "+restart)
	}
}

// scanIsDue rejects an initial scan that would not take place: the bridge has started without one, or has ended after
// one.
func (o *Settings) scanIsDue(f *offsets.Frontier) error {
	scan := f.Scan
	switch {
	case o.Scan == "" || o.Scan == "no":
		return nil
	case !scan.Started():
		return plain.SettingsErrorf("BRIDGE_INITIAL_SCAN=%s is for the first start, and %s has "+
			"progress: set it to no, and run bridge scan; to begin with a scan, restart from scratch with bridge reset",
			o.Scan, o.Bridge)
	case o.Scan == "yes" && scan.Only && f.Ended:
		from := scan.Begin.String()
		if scan.Begin == (source.Segment{}) {
			from = "earliest"
		}
		return plain.SettingsErrorf("BRIDGE_INITIAL_SCAN=yes, but %s has exported the account with "+
			"only, and is done: to deliver the feed behind the export, run bridge seek --to %s --yes, or restart from "+
			"scratch with bridge reset", o.Bridge, from)
	}
	return nil
}

// moved returns what to do about a directory that may be the former one at another path. Nothing in two copies of a
// feed proves that they are of one account, so the bridge does not decide that.
func moved(from, to string) string {
	from, old := strings.CutPrefix(from, "file://")
	to, now := strings.CutPrefix(to, "file://")
	if !old || !now {
		return ""
	}
	if _, err := os.Lstat(from); !errors.Is(err, fs.ErrNotExist) {
		return "" // ln would put the link into the directory that is there
	}
	return fmt.Sprintf("or, if this is the same feed at another path, keep the former path as well (ln -s %s %s), ",
		plain.Shell(to), plain.Shell(from))
}

// FitLeases rejects a state whose topic has another number of partitions than the state is made for.
func (o *Settings) FitLeases(f *offsets.Frontier, partitions int) error {
	if f.Leases == 0 || f.Leases == partitions {
		return nil
	}
	return o.LeasesChanged(f.Leases, partitions)
}

// LeasesChanged is the error for another number of partitions than the state is made for: shards would change their
// leases, and their cursors would be in the wrong places.
func (o *Settings) LeasesChanged(had, has int) error {
	return plain.WithRemedy(plain.SettingsErrorf("%s has %s, and its state is made for %d, which never changes",
		plain.StateTopic(o.Bridge), plain.Count(has, "partition"), had), "partitions cannot be removed, so restart "+
		"from scratch with another BRIDGE_NAME, or with bridge reset (BRIDGE_START says where delivery begins then)")
}

// changed describes the settings that differ from the stored ones. A value that only follows from another changed
// setting is left out, since the user did not choose it. Fresh: there are no records.
func (o *Settings) changed(frozen map[string]string, fresh bool) (all []string) {
	differs := func(name string) bool {
		have, stored := frozen[name]
		want, ok := o.Values[name]
		return stored && ok && want != have
	}
	for _, name := range slices.Sorted(maps.Keys(frozen)) {
		base := o.Follows[name]
		if !differs(name) || differs(base) {
			continue
		}
		text := name + "=" + o.Values[name]
		if base != "" {
			text += " (from " + base + ")"
		}
		former := ", but records were written "
		if fresh {
			former = ", but the bridge was first started "
		}
		if frozen[name] == "" {
			former += "without it"
		} else {
			former += "with " + frozen[name]
		}
		all = append(all, text+former)
	}
	return all
}

package change

import (
	"context"
	"strings"
	"testing"
	"time"

	"blobfeed/offsets"
	"blobfeed/source/inventory"
)

// A container that cannot be listed is rejected at once, not by a scan that finds nothing.
func TestContainerOfAScan(t *testing.T) {
	for name, valid := range map[string]bool{
		"": true, "photos": true, "a-b1": true, "$web": true, "$root": true, strings.Repeat("a", 63): true,
		"$blobchangefeed": false, "$logs": false, "Photos": false, "ab": false, "a--b": false, "-ab": false, "a/b": false,
		strings.Repeat("a", 64): false,
	} {
		s := Scan{Container: name}
		if err := s.CheckContainer(); err == nil != valid {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// The end of a bridge ends its scans as well: a request would wait for good.
func TestScanBehindTheEnd(t *testing.T) {
	for want, f := range map[string]*offsets.Frontier{
		"BRIDGE_INITIAL_SCAN=only": {Ended: true, Scan: &offsets.Scan{Only: true, Initial: true, Done: true}},
		"bridge seek":              {Ended: true},
		"":                         {},
	} {
		_, err := new(Scan).allowed(&offsets.State{Frontier: f}, time.Now())
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%+v: %v", f, err)
		}
	}
}

// listed is an account that has one container.
type listed struct{ inventory.Store }

func (listed) List(_ context.Context, q inventory.Query) (page *inventory.Page, err error) {
	if q.Container != "photos" {
		err = inventory.ErrNoContainer
	}
	return page, err
}

func TestContainerExists(t *testing.T) {
	for name, there := range map[string]bool{"": true, "photos": true, "fotos": false} {
		s := Scan{Container: name, Account: listed{}}
		if err := s.exists(t.Context()); err == nil != there {
			t.Errorf("%q: %v", name, err)
		}
	}
}

package check

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"blobfeed/bridge"
	"blobfeed/internal/plain"
	"blobfeed/source/inventory"
)

// What 10,000 requests cost in US dollars in a hot, locally redundant account, by the public price list of East US.
// Other regions and redundancies differ.
const (
	listPrice = 0.05
	headPrice = 0.004
)

// Price returns what list requests and HEAD requests cost in US dollars.
func Price(lists, heads int64) float64 {
	return (float64(lists)*listPrice + float64(heads)*headPrice) / 10_000
}

// scans reports whether the settings ask for a scan.
func scans(o *bridge.Options) bool {
	return o.Feed.InitialScan == bridge.ScanYes || o.Feed.InitialScan == bridge.ScanOnly || o.Feed.RescanGaps
}

// scan tries what a scan needs of the account, and says what it will cost, if the settings ask for one.
func (fs *Findings) scan(ctx context.Context, o *bridge.Options) {
	if o.Feed.Inventory == nil || !scans(o) {
		return
	}
	const do = "let the identity list the account: the role Storage Blob Data Reader on the account, not on one " +
		"container; a SAS needs the account's scope and the permission l"
	containers, first := 0, ""
	for name, err := range inventory.Names(ctx, o.Feed.Inventory) {
		if err != nil {
			fs.Add("scan", Failed, err.Error(), do)
			return
		}
		if o.Feed.Filter.Selects(name) {
			containers++
			first = cmp.Or(first, name)
		}
	}
	if containers == 0 {
		fs.Add("scan", Warning, "the account has no container that BRIDGE_CONTAINERS selects: a scan writes no row", "")
		return
	}
	_, err := o.Feed.Inventory.List(ctx, inventory.Query{Container: first, Max: 1})
	if err != nil && !errors.Is(err, inventory.ErrNoContainer) {
		fs.Add("scan", Failed, err.Error(), do)
		return
	}
	const pages = 1_000_000 / inventory.MaxPage
	fs.Add("scan", OK, fmt.Sprintf("a scan lists %s; each million blobs takes %d list requests, about $%.3f at the "+
		"list price of a hot, locally redundant account; a sweep also makes a HEAD request for each key without a "+
		"blob, about $%.2f for a million",
		plain.Count(containers, "container"), pages, Price(pages, 0), Price(0, 1_000_000)), "")
}

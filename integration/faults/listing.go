package faults

import (
	"bytes"
	"net/http"
)

// emptyMarker is the continuation of an empty page: behind it the listing begins.
const emptyMarker = "faults-empty"

const emptyPage = "\ufeff" + `<?xml version="1.0" encoding="utf-8"?><EnumerationResults ServiceEndpoint="" ContainerName="$blobchangefeed">` +
	`<Blobs /><NextMarker>` + emptyMarker + `</NextMarker></EnumerationResults>`

// kept is how many listings of one query are remembered.
const kept = 6

// listings are those of the past, by query: each differs from the one before.
type listings map[string][]*answer

// allow reports whether a listing can have k: a stale one needs a past, small pages need two entries. What goes on
// behind a page has neither, and is not empty.
func (l listings) allow(k Kind, r *http.Request) bool {
	if r.URL.Query().Get("marker") != "" {
		return k.suits(Chunk) // the kinds that are not of listings alone
	}
	all := l[r.URL.RequestURI()]
	switch k {
	case StaleListing:
		return len(all) > 1
	case SmallPages:
		return len(all) > 0 && bytes.Count(all[len(all)-1].body, []byte("<Name>")) > 1
	}
	return true
}

// remember keeps a whole listing. It returns another one, of the past, if there is one: it may be the last that the
// client has seen, or older.
func (p *Proxy) remember(r *http.Request, a *answer, page string) (stale *answer) {
	if a.status != http.StatusOK || page != "" || a.continued() || r.URL.Query().Get("marker") != "" {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	name := r.URL.RequestURI()
	all := p.listings[name]
	if n := len(all); n > 0 && bytes.Equal(all[n-1].body, a.body) {
		all = all[:n-1]
	}
	if n := len(all); n > 0 {
		stale = all[p.rng.IntN(n)]
	}
	all = append(all, a)
	p.listings[name] = all[max(0, len(all)-kept):]
	return stale
}

// continued reports whether a page is followed by another.
func (a *answer) continued() bool {
	_, marker, _ := bytes.Cut(a.body, []byte("<NextMarker>")) // else it is <NextMarker />
	return len(marker) > 0 && !bytes.HasPrefix(marker, []byte("</"))
}

// page draws the size of a small page.
func (p *Proxy) page() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return [...]string{"1", "2"}[p.rng.IntN(2)]
}

// paginate changes the query of a listing where it has to be, and reports whether it did. What goes on behind a small
// page is small, too: the listings of tests are never so long that the service makes pages by itself.
func paginate(r *http.Request, page string) bool {
	q := r.URL.Query()
	switch marker := q.Get("marker"); {
	case marker == emptyMarker:
		q.Del("marker")
	case marker != "":
		q.Set("maxresults", "1")
	case page != "":
		q.Set("maxresults", page)
	default:
		return false
	}
	r.URL.RawQuery = q.Encode()
	return true
}

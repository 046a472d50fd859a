package faults

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
)

// Without faults the service sees path, query and headers as the client sent them, and the client its answer.
func TestForward(t *testing.T) {
	s, p, base := proxied(t, Options{})
	const path = "/acct/%24blobchangefeed/a%20b%2Fc//d.avro?x=%41&b=&a=1;2"
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Ms-Range", "bytes=0-3")
	req.Header.Set("Authorization", "SharedKey acct:x")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || string(body) != content || resp.ContentLength != int64(len(content)) ||
		resp.Header.Get("ETag") != `"0x1"` {
		t.Errorf("%q, %v, %v", body, resp.Header, err)
	}
	got := s.requests[0]
	if got.RequestURI != path || got.Header.Get("X-Ms-Range") != "bytes=0-3" ||
		got.Header.Get("Authorization") != "SharedKey acct:x" {
		t.Errorf("the service saw %s %v", got.RequestURI, got.Header)
	}
	if st := p.Stats(); st.Requests[Chunk] != 1 || st.Total() != 1 || st.Bytes[Chunk] != int64(len(content)) ||
		st.Injected() != 0 {
		t.Errorf("%v", st)
	}
}

// The SDK understands the refusals as the service's, of blobs and of listings.
func TestRefusals(t *testing.T) {
	for k, what := range refusals {
		s, p, base := proxied(t, Options{Rate: 1, Spare: only(k)})
		cl := client(t, base)
		_, err := cl.NewBlobClient("log/00/x.avro").DownloadStream(t.Context(), nil)
		check := func(err error) {
			t.Helper()
			var status *azcore.ResponseError
			if !bloberror.HasCode(err, bloberror.Code(what.code)) || !errors.As(err, &status) ||
				status.StatusCode != what.status {
				t.Errorf("%s: %v", k, err)
				return
			}
			body, err := io.ReadAll(status.RawResponse.Body)
			if err != nil || !strings.HasPrefix(string(body), "\ufeff<?xml") ||
				!strings.Contains(string(body), "<Code>"+what.code+"</Code>") {
				t.Errorf("%s: body %q, %v", k, body, err)
			}
			if after := status.RawResponse.Header.Get("Retry-After"); (after != "") != (k == TooManyRequests) {
				t.Errorf("%s: Retry-After %q", k, after)
			}
		}
		check(err)
		hits := 1
		if k.suits(Listing) {
			_, err := cl.NewListBlobsFlatPager(&container.ListBlobsFlatOptions{}).NextPage(t.Context())
			check(err)
			hits++
		}
		if st := p.Stats(); st.Faults[k] != hits || st.Injected() != hits || len(s.requests) != 0 {
			t.Errorf("%s: %v; %d requests came through", k, st, len(s.requests))
		}
	}
}

// get returns what of a body comes, and how it ends.
func get(ctx context.Context, url string) (body string, head bool, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", false, err
	}
	req.Close = true // the transport tries again by itself on connections it used before
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", false, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return string(b), true, err
}

func TestBrokenConnections(t *testing.T) {
	for k, want := range map[Kind]struct {
		head  bool
		whole bool
		err   error
	}{
		ResetHead: {false, false, syscall.ECONNRESET},
		ResetBody: {true, false, syscall.ECONNRESET},
		ShortBody: {true, false, io.ErrUnexpectedEOF},
		SlowBody:  {true, true, nil},
	} {
		_, p, base := proxied(t, Options{Rate: 1, Spare: only(k), Pause: time.Microsecond})
		body, head, err := get(t.Context(), base+"/acct/x.avro")
		part := strings.HasPrefix(content, body) && (len(body) == len(content)) == want.whole
		if head != want.head || !part || !errors.Is(err, want.err) {
			t.Errorf("%s: head %t, body %q, %v", k, head, body, err)
		}
		if k == ShortBody && body == "" {
			t.Errorf("%s: not a byte came", k)
		}
		if st := p.Stats(); st.Faults[k] != 1 || (st.Bytes[Chunk] > 0) != want.whole {
			t.Errorf("%s: %v", k, st)
		}
	}
}

// Stalls end when the client gives up, not before.
func TestStalls(t *testing.T) {
	for _, k := range []Kind{StalledHead, StalledBody} {
		_, p, base := proxied(t, Options{Rate: 1, Stalls: true, Spare: only(k)})
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		body, head, err := get(ctx, base+"/acct/x.avro")
		if !errors.Is(err, context.DeadlineExceeded) || head != (k == StalledBody) || len(body) == len(content) ||
			(k == StalledBody) != (body != "") {
			t.Errorf("%s: head %t, body %q, %v", k, head, body, err)
		}
		if p.Stats().Faults[k] != 1 {
			t.Errorf("%s: %v", k, p.Stats())
		}
	}
}

// A run of some hundred requests meets every kind, at the rate that was asked for; with the same seed, the same faults.
func TestRate(t *testing.T) {
	type hit struct {
		n int
		k Kind
	}
	run := func(seed uint64, o Options) (hits []hit, _ Stats) {
		o.Key, o.Seed = key, seed
		p := New(o)
		for i := range 4000 {
			url := []string{"/acct/c/meta/segments.json", "/acct/c/idx/segments/x/meta.json", "/acct/c/log/0.avro",
				"/acct/c?comp=list"}[i%4]
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
			if err != nil {
				t.Fatal(err)
			}
			if i%4 == 3 { // a listing that grows
				p.remember(r, &answer{status: http.StatusOK, body: []byte(strings.Repeat("<Name>", i))}, "")
			}
			if k := p.choose(classOf(r), r); k != None {
				hits = append(hits, hit{i, k})
				p.injected(k)
			}
		}
		return hits, p.Stats()
	}
	hits, st := run(1, Options{Rate: 0.05})
	if st.Total() != 4000 || st.Injected() < 140 || st.Injected() > 260 || st.Injected() != len(hits) {
		t.Errorf("%v", st)
	}
	o := Options{Key: key}
	for _, k := range o.kinds() {
		if st.Faults[k] < 3 {
			t.Errorf("%s: %d times", k, st.Faults[k])
		}
	}
	if st.Faults[StalledHead]+st.Faults[StalledBody] > 0 {
		t.Error("stalls without being asked for")
	}
	for c := range classes {
		if want := 1000; c != Other && st.Requests[c] != want {
			t.Errorf("%s: %d requests", c, st.Requests[c])
		}
	}
	if again, _ := run(1, Options{Rate: 0.05}); !slices.Equal(hits, again) {
		t.Error("the same seed gave other faults")
	}
	if other, _ := run(2, Options{Rate: 0.05}); slices.Equal(hits, other) {
		t.Error("another seed gave the same faults")
	}
	if _, st := run(1, Options{}); st.Injected() != 0 {
		t.Errorf("rate 0: %v", st)
	}
	if _, st := run(1, Options{Rate: 0.1, Stalls: true}); st.Faults[StalledHead] == 0 || st.Faults[StalledBody] == 0 {
		t.Errorf("with stalls: %v", st)
	}
}

func TestSetRate(t *testing.T) {
	_, p, base := proxied(t, Options{Rate: 1, Spare: only(InternalError)})
	if body, _, err := get(t.Context(), base+"/acct/x.avro"); err != nil || body == content {
		t.Errorf("%q, %v", body, err)
	}
	before := p.Stats()
	p.SetRate(0)
	if body, _, err := get(t.Context(), base+"/acct/x.avro"); err != nil || body != content {
		t.Errorf("%q, %v", body, err)
	}
	if st := p.Stats().Since(before); st.Total() != 1 || st.Injected() != 0 || st.Bytes[Chunk] != int64(len(content)) {
		t.Errorf("since then %v", st)
	}
}

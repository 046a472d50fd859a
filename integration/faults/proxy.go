package faults

import (
	"cmp"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"
)

// Options are those of a Proxy. Target is required.
type Options struct {
	Target *url.URL // the service: scheme and host count
	Seed   uint64
	Rate   float64 // of requests that are hit: 0 to 1
	Stalls bool    // also kinds that only the client's patience ends

	Account, Key string        // to sign listings again; without a key they have no small and no empty pages
	Pause        time.Duration // between the bytes of a slow body; 20 ms

	// Spare, unless it is nil, says which faults a request must not have.
	Spare func(Kind, *http.Request) bool
}

// Proxy is an http.Handler.
type Proxy struct {
	opt   Options
	kinds []Kind
	up    http.RoundTripper

	mu       sync.Mutex
	rate     float64
	rng      *rand.Rand
	tried    [kinds]int
	stats    Stats
	listings listings
}

// New returns a proxy.
func New(o Options) *Proxy {
	o.Pause = cmp.Or(o.Pause, 20*time.Millisecond)
	return &Proxy{
		opt: o, kinds: o.kinds(), rate: o.Rate, rng: rand.New(rand.NewPCG(o.Seed, 4)), listings: listings{},
		up: &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 32},
	}
}

// Kinds returns what can go wrong.
func (p *Proxy) Kinds() []Kind { return slices.Clone(p.kinds) }

// SetRate changes the rate: 0 ends the faults.
func (p *Proxy) SetRate(rate float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rate = rate
}

// Stats says what happened so far.
func (p *Proxy) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stats
}

// ServeHTTP implements http.Handler.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	class := classOf(r)
	kind := p.choose(class, r)
	_, refused := refusals[kind]
	page := ""
	switch {
	case refused:
		p.injected(kind)
		refuse(w, r, kind)
		return
	case kind == ResetHead:
		p.injected(kind)
		hangUp(w, true)
		return
	case kind == StalledHead:
		p.injected(kind)
		<-r.Context().Done()
		panic(http.ErrAbortHandler)
	case kind == EmptyPage:
		p.injected(kind)
		_, _ = io.WriteString(w, emptyPage) // a client that is gone has nobody to tell
		return
	case kind == SmallPages:
		page = p.page()
	}
	a, err := p.forward(r, class, page)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway) // the test that runs the service sees it fail
		return
	}
	if class == Listing {
		if kind == SmallPages && a.continued() {
			p.injected(kind)
		}
		stale := p.remember(r, a, page)
		if kind == StaleListing && stale != nil {
			p.injected(kind)
			a = stale
		}
	}
	p.send(w, r, class, kind, a)
}

// choose draws what is done to a request. Of the kinds that suit, the one that was tried least is next.
func (p *Proxy) choose(class Class, r *http.Request) Kind {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stats.Requests[class]++
	if p.rng.Float64() >= p.rate || r.Method != http.MethodGet {
		return None
	}
	var best []Kind
	for _, k := range p.kinds {
		switch {
		case !k.suits(class), class == Listing && !p.listings.allow(k, r), p.opt.Spare != nil && p.opt.Spare(k, r):
			continue
		case len(best) > 0 && p.tried[k] > p.tried[best[0]]:
			continue
		case len(best) > 0 && p.tried[k] < p.tried[best[0]]:
			best = best[:0]
		}
		best = append(best, k)
	}
	if len(best) == 0 {
		return None
	}
	kind := best[p.rng.IntN(len(best))]
	p.tried[kind]++
	return kind
}

// injected counts a fault that the client will see.
func (p *Proxy) injected(k Kind) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stats.Faults[k]++
}

// cut returns where to break a body of n bytes: not before it, not behind it.
func (p *Proxy) cut(n int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return 1 + p.rng.IntN(n-1)
}

// answer is the service's, read whole.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// perHop are headers of one connection, not of the answer.
var perHop = []string{"Connection", "Keep-Alive", "Transfer-Encoding"}

// forward asks the service. Page, if it is not "", is the size of the listing's page.
func (p *Proxy) forward(r *http.Request, class Class, page string) (*answer, error) {
	out := r.Clone(r.Context())
	out.RequestURI, out.Close, out.Host = "", false, ""
	out.URL.Scheme, out.URL.Host = p.opt.Target.Scheme, p.opt.Target.Host // and the path as it came, escapes included
	for _, h := range perHop {
		out.Header.Del(h)
	}
	if class == Listing && p.opt.Key != "" && paginate(out, page) {
		if err := sign(out, p.opt.Account, p.opt.Key); err != nil {
			return nil, err
		}
	}
	resp, err := p.up.RoundTrip(out)
	if err != nil {
		return nil, fmt.Errorf("asking the service: %w", err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, fmt.Errorf("reading the service's answer: %w", err)
	}
	for _, h := range perHop {
		resp.Header.Del(h)
	}
	return &answer{resp.StatusCode, resp.Header, slices.Clip(body)}, nil
}

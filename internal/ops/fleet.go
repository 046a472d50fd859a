package ops

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/singleflight"

	"blobfeed/internal/status"
)

// FleetMonitor shows the bridges of a process. It is safe for concurrent use.
type FleetMonitor struct {
	info    Info
	process *prometheus.Registry
	scrapes singleflight.Group

	mu       sync.Mutex
	draining bool
	events   int // of bridges that are gone
	bridges  map[string]*fleetBridge
	reload   *Reload
}

type fleetBridge struct {
	monitor *Monitor
	metrics *Metrics
	handler http.Handler
}

// FleetStatus is the answer of /status of a process with many bridges. It is part of the interface.
type FleetStatus struct {
	Instance string         `json:"instance"`
	Version  string         `json:"version"`
	Now      time.Time      `json:"now"`
	Ready    bool           `json:"ready"`
	Reload   *Reload        `json:"reload"`  // null before the first
	Events   int            `json:"events"`  // since the start of the process, also of bridges that are gone
	Bridges  []BridgeStatus `json:"bridges"` // by name
}

// BridgeStatus is a bridge in the list. Its own status is at /bridges/<name>/status.
type BridgeStatus struct {
	Name       string         `json:"name"`
	Feed       string         `json:"feed"`
	Topic      string         `json:"topic"`
	Ready      bool           `json:"ready"`
	Verdict    status.Verdict `json:"verdict"`
	Lag        status.Lag     `json:"lag"`
	Throughput Throughput     `json:"throughput"`
	Events     int            `json:"events"` // since the start of the process

	reasons []Reason
	waits   bool // for its first contact with the brokers
}

// NewFleetMonitor returns a fleet without bridges. Of info it shows instance and version.
func NewFleetMonitor(info Info) *FleetMonitor {
	f := &FleetMonitor{info: info, process: newProcess(), bridges: map[string]*fleetBridge{}}
	f.process.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts(opts(reloadSuccessful)), func() float64 {
		last := f.lastReload()
		return truth(last == nil || len(last.Problems) == 0)
	}))
	return f
}

// Show adds a bridge, or replaces the one of its name.
func (f *FleetMonitor) Show(m *Monitor, metrics *Metrics) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.retire(m.name)
	prefix := "/bridges/" + m.name
	f.bridges[m.name] = &fleetBridge{m, metrics, http.StripPrefix(prefix, Handler(m, metrics))}
	if f.draining {
		m.Drain()
	}
}

// Hide removes a bridge.
func (f *FleetMonitor) Hide(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.retire(name)
	delete(f.bridges, name)
}

// retire keeps the count of a bridge that leaves, if it is there. The fleet is locked.
func (f *FleetMonitor) retire(name string) {
	if b := f.bridges[name]; b != nil {
		f.events += b.monitor.Snapshot().SinceStart.Events
	}
}

// Drain makes the process and all bridges unready, because they stop.
func (f *FleetMonitor) Drain() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.draining = true
	for _, b := range f.bridges {
		b.monitor.Drain()
	}
}

// all returns the bridges, by name.
func (f *FleetMonitor) all() (bridges []*fleetBridge, events int, draining bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(f.bridges)) {
		bridges = append(bridges, f.bridges[name])
	}
	return bridges, f.events, f.draining
}

// Snapshot returns the status of this moment. One bad account must not keep a deployment from going on, so the process
// is ready when every bridge has begun or failed, and one is ready.
func (f *FleetMonitor) Snapshot() *FleetStatus {
	bridges, events, draining := f.all()
	s := &FleetStatus{
		Instance: f.info.Instance, Version: f.info.Version, Now: time.Now().UTC(), Reload: f.lastReload(),
		Bridges: []BridgeStatus{}, Events: events,
	}
	waits, ready := draining, len(bridges) == 0
	for _, b := range bridges {
		own := b.monitor.brief()
		s.Bridges, s.Events = append(s.Bridges, own), s.Events+own.Events
		waits, ready = waits || own.waits, ready || own.Ready
	}
	s.Ready = ready && !waits
	return s
}

// why returns the reasons of the first bridges that have some: a kubelet keeps no more, and the list has all.
func (s *FleetStatus) why() string {
	var reasons strings.Builder
	shown, more := 0, 0
	for _, b := range s.Bridges {
		switch {
		case len(b.reasons) == 0:
		case shown == reasonsShown:
			more++
		default:
			shown++
			reasons.WriteString(lines(b.reasons, b.Name+": "))
		}
	}
	if more > 0 {
		fmt.Fprintf(&reasons, "%d more bridges have reasons: see /status\n", more)
	}
	return cmp.Or(reasons.String(), "draining: the process is stopping\n")
}

// reasonsShown is how many bridges /readyz gives reasons of.
const reasonsShown = 100

// brief returns what the list shows.
func (m *Monitor) brief() BridgeStatus {
	s := m.Snapshot()
	return BridgeStatus{
		Name: s.Name, Feed: s.Feed, Topic: s.Topic, Ready: s.Ready, Verdict: s.Verdict, Lag: s.Lag,
		Throughput: s.Throughput, Events: s.SinceStart.Events, reasons: s.Reasons,
		waits: len(s.Errors) == 0 && slices.ContainsFunc(s.Reasons, Reason.starting),
	}
}

func (r Reason) starting() bool { return r.Code == "starting" }

// FleetHandler serves the bridges of a process.
//
//	/                  the list of the bridges
//	/healthz           200 while the process can answer
//	/readyz            200, or 503 with the reasons, each with the name of its bridge
//	/status            a FleetStatus, as JSON
//	/metrics           of all bridges, with the label bridge, and of the process
//	/bridges/<name>/…  what Handler serves of one of them
func FleetHandler(f *FleetMonitor) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { text(w, http.StatusOK, "ok\n") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		s := f.Snapshot()
		if s.Ready {
			ready(w, true, "")
			return
		}
		ready(w, false, s.why())
	})
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, _ *http.Request) { document(w, f.Snapshot()) })
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
		bridges, _, _ := f.all()
		gatherers := prometheus.Gatherers{f.process}
		for _, b := range bridges {
			gatherers = append(gatherers, b.metrics.registry)
		}
		scrape(prometheus.GathererFunc(shared(&f.scrapes, gatherers.Gather))).ServeHTTP(w, r)
	})
	mux.HandleFunc("GET /bridges/{name}/", func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		b := f.bridges[r.PathValue("name")]
		f.mu.Unlock()
		if b == nil {
			text(w, http.StatusNotFound, "this process has no bridge of that name\n")
			return
		}
		b.handler.ServeHTTP(w, r)
	})
	mux.HandleFunc("GET /{$}", servePage(fleetPage))
	return mux
}

// Reload is the last reload of the settings file.
type Reload struct {
	Time     time.Time        `json:"time"`
	Problems []status.Problem `json:"problems"` // of the file, or of bridges, which run on with their former settings
}

// Reloaded reports a reload of the settings file, and what was rejected in it.
func (f *FleetMonitor) Reloaded(problems []status.Problem) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if problems == nil {
		problems = []status.Problem{}
	}
	f.reload = &Reload{time.Now().UTC(), problems}
}

// lastReload returns the last reload, nil if there was none.
func (f *FleetMonitor) lastReload() *Reload {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.reload
}

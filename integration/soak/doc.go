// Package soak runs one instance of the built program for hours as it runs in production, and looks at what only hours
// show.
//
// A feed in Azurite grows in real time, with segments as long as Azure's. A real Prometheus scrapes the instance and
// evaluates deploy/prometheus/alerts.yaml. In the middle the only broker is frozen (SIGSTOP) for ten minutes:
// connections stay open and nothing answers. Settings are the defaults, with a memory limit. At the end:
//
//   - the process was never larger than its limit, and neither its memory nor the number of
//     its goroutines grew (Flat);
//   - alerts' expressions were true when they should be, and at no other time (Expectation);
//   - every event is in the topic once, in order, and markers are right: package verify, and bridge verify --feed.
//
// # Running it
//
// make soak takes two hours, or SOAK_DURATION, and needs prometheus in PATH or in PROMETHEUS. It is no part
// of make integration. Without SOAK_DURATION (go test -tags soak ./integration/soak) it takes four minutes
// and a half. Then segments are a minute long, and memory is compared with the limit only. The broker is
// frozen for 75 seconds, too short for an outage's alerts to fire. A tenth of a core is enough for all of it.
//
// The run leaves the program's log and Prometheus' data in -outputdir, for later questions.
package soak

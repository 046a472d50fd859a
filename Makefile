# What CI runs is "make verify". Go is enough for demo and test; integration also needs Java 17, Maven, Node, npm and Python 3 with venv.
GO         ?= go
STATIC     := $(GO) tool -modfile=tools/go.mod staticcheck
VERSION    ?= $(shell git describe --tags --always --dirty 2>/dev/null)

.DEFAULT_GOAL := build
.PHONY: help build demo test raced rest thorough fuzz sim integration chaos soak stack bench peers docs fmt lint fresh alerts deployment cross vuln outdated verify clean

help: ## this list
	@sed -n 's/^\([a-z][a-z ]*\):.*## /\1|/p' $(firstword $(MAKEFILE_LIST)) | awk -F'|' '{ printf "%-12s %s\n", $$1, $$2 }'

build: ## the program, static, in bin/
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w -X main.version=$(VERSION)' -o bin/bridge ./cmd/bridge

demo: build ## the main job on an embedded broker and a sample feed that grows; Ctrl-C stops it
	bin/bridge demo

# Most packages and tests wait for a broker more than they work, so more of them run at a time than there are cores. Those
# that take longest begin first. "make lint" vets the tests, too.
TEST       := $(GO) test -vet=off -shuffle=on
# The race detector would wait for a second at the end of each package, and map its memory anew for each allocation of
# 64 KiB, a seventh of package bridge's time. Most of what a test allocates is soon garbage.
export GORACE ?= atexit_sleep_ms=10 clear_shadow_mmap_threshold=67108864
WITH_RACE  := GOGC=400 $(TEST) -p 2 -parallel 8 -race -short
# Compiled as "make build" and the tests of the built program do, so that each package is compiled once.
NO_RACE    := CGO_ENABLED=0 GOFLAGS="$$($(GO) env GOFLAGS) -trimpath" $(TEST) -p 3 -parallel 4
# Slow with the race detector, which would find little: models, built programs, codecs, verbs over what other packages test.
UNRACED    := ./cmd/bridge ./deploy ./integration/simulation ./internal/testing/protocol ./envelope ./source/ocf
RACED       = ./bridge ./verify/judge ./offsets $$($(GO) list ./... | grep -vxF "$$($(GO) list $(UNRACED))")
# The race detector multiplies a test's time by four. So "make test" runs it where goroutines of the engine, and of what
# observes it, share something: in packages that start some or lock. "make thorough" runs it on all but UNRACED.
ENGINE     := bridge offsets source internal/catalog internal/crash internal/history internal/kafka internal/ops \
	internal/progress internal/suspects internal/topics
SHARING     = $$(grep -rlE --include='*.go' --exclude='*_test.go' '^[[:space:]]+go |(sync|atomic|errgroup)[.]' \
	$(ENGINE) | xargs -n1 dirname | sort -u | sed 's,^,./,')
QUICK       = ./bridge ./offsets $$($(GO) list $(SHARING) | grep -vxF "$$($(GO) list $(UNRACED))")
# Tools of the other checks, and what "make fresh" looks at, have their tests in "make thorough".
REST        = $(UNRACED) ./verify/judge $$($(GO) list ./... | grep -vE '/integration|/notices' | grep -vxF "$$($(GO) list $(QUICK))")
# At full length, they run without the race detector.
SHORTENED   = $$(grep -rl --include='*_test.go' 'testing.Short()' * | xargs -n1 dirname | sort -u | sed 's,^,./,')
test: ## unit tests, the longest of them shortened, and a part of the model of the protocol; nothing but Go is needed
	@$(MAKE) --no-print-directory -j 2 raced rest

raced:
	@$(WITH_RACE) $(QUICK)

rest:
	@$(NO_RACE) -short $(REST)

thorough: ## unit tests at full length, the model of the protocol, and a little fuzzing; nothing but Go is needed
	@$(WITH_RACE) $(RACED)
	$(NO_RACE) $(UNRACED) $(SHORTENED)
	$(MAKE) fuzz

# A count, not a time: at the end of a time the Go tool may take a busy worker for a failure.
FUZZTIME ?= 100x
# In KiB, of a worker: what is hostile must not take more, whatever a target itself looks at.
export FUZZMEMORY ?= 1048576
fuzz: ## every fuzz target, FUZZTIME long, each in FUZZMEMORY KiB of memory
	@for dir in $$(grep -rl --include='*_test.go' '^func Fuzz' . | xargs -n1 dirname | sort -u); do \
		for target in $$(grep -ho '^func Fuzz[A-Za-z]*' $$dir/*_test.go | cut -d' ' -f2); do \
			echo "$$dir $$target"; \
			$(GO) test -exec $(CURDIR)/tools/ceiling.sh -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) ./$$dir > .fuzz.log 2>&1 || { cat .fuzz.log; exit 1; }; \
		done; \
	done; rm -f .fuzz.log

# The tag is for the Kafka client, see integration/simulation/doc.go.
sim: ## random seeds of the simulation for SIM_DURATION, from SIM_SEED on if it is set; SIM_SEED alone, with go test, replays one
	SIM_DURATION=$${SIM_DURATION:-10m} $(GO) test -count=1 -timeout 24h -tags synctests ./integration/simulation

# The other packages below integration have unit tests, which "make test" runs.
TAGGED = $$(grep -rl --include='*_test.go' '^//go:build integration' integration | xargs -n1 dirname | sort -u | sed 's,^,./,')
integration: ## the program against real Kafka, registry and Azurite, started here unless KAFKA_BROKERS etc. are set
	$(GO) build -o bin/stack ./integration/stack/cmd/stack
	@mkdir -p bin/logs
	bin/stack run $(GO) test -p 1 -parallel 4 -count=1 -timeout 20m -tags integration -artifacts -outputdir bin/logs $(TAGGED)

chaos: ## half an hour of faults on several instances and three brokers; CHAOS_SEED=… repeats a plan
	@mkdir -p bin/logs
	CHAOS_FAULTS=$${CHAOS_FAULTS:-500} $(GO) test -v -count=1 -timeout 2h -tags integration -artifacts -outputdir bin/logs -run TestChaos ./integration/chaos

soak: ## two hours of a live feed, with the broker blocked for ten minutes in them; needs prometheus
	@mkdir -p bin/logs
	SOAK_DURATION=$${SOAK_DURATION:-2h} $(GO) test -v -count=1 -timeout 24h -tags soak -artifacts -outputdir bin/logs -run TestSoak ./integration/soak

stack: ## keeps Kafka, registry and Azurite up until Ctrl-C
	$(GO) build -o bin/stack ./integration/stack/cmd/stack
	bin/stack up

bench: ## the figures of docs/project/performance.md
	$(GO) test -run '^$$' -bench . -benchtime 2s ./source/... ./envelope ./partitioner
	$(GO) run ./integration/bench

peers: ## the charts of docs/comparison.md: the bridge beside Azure's SDKs, which Maven, npm and pip install
	$(GO) run ./integration/peers

docs: ## what is generated from the source
	$(GO) run ./cmd/bridge config --format markdown > docs/configuration.md
	$(GO) run ./cmd/bridge metrics --format markdown > docs/metrics.md
	sed -n 's/^- `BRIDGE_\([A-Z0-9_]*\)`.*/\1/p' docs/configuration.md > deploy/helm/blobfeed-bridge/files/settings
	$(GO) test -count=1 ./deploy/notices -update
	cp deploy/grafana/bridge.json deploy/helm/blobfeed-bridge/files/dashboard.json # a chart holds all of its files
	cp deploy/prometheus/alerts.yaml deploy/helm/blobfeed-bridge/files/alerts.yaml

fmt: ## gofmt over all files
	gofmt -w $$(git ls-files '*.go')

lint: ## formatting, vet and staticcheck, with every build tag
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { gofmt -l $$(git ls-files '*.go'); echo "run make fmt"; exit 1; }
	$(GO) mod verify >/dev/null
	$(GO) vet ./...
	$(GO) vet -tags integration,soak ./integration/...
	cd integration/peers/golang && $(GO) vet ./...
	cd examples/postgres && $(GO) vet ./...
	$(GO) vet -tags mutation ./internal/... ./offsets ./bridge
	$(GO) vet -tags synctests ./integration/simulation
	$(GO) vet -tags synctests,mutation ./integration/simulation
	$(STATIC) ./...
	$(STATIC) -tags integration,soak ./integration/...
	$(STATIC) -tags mutation ./internal/... ./offsets ./bridge
	$(STATIC) -tags synctests ./integration/simulation

fresh: ## generated docs and licences are as the source says
	@$(GO) run ./cmd/bridge config --format markdown | diff -u docs/configuration.md - || { echo "run make docs"; exit 1; }
	@$(GO) run ./cmd/bridge metrics --format markdown | diff -u docs/metrics.md - || { echo "run make docs"; exit 1; }
	$(GO) test -count=1 ./deploy/notices # the test cache does not see what go list reads

# Not from the test cache: it does not see files outside of the module.
deployment: ## chart, manifests, compose file and release settings, with Helm's engine and Kubernetes' types
	cd tools/chart && $(GO) vet ./... && $(GO) test -count=1 ./...

cross: ## every platform that is released
	@for p in linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64; do \
		echo $$p; CGO_ENABLED=0 GOOS=$${p%/*} GOARCH=$${p#*/} $(GO) build -o /dev/null ./cmd/bridge || exit 1; done

VULNDB ?= https://vuln.go.dev
vuln: ## known vulnerabilities that the program reaches; VULNDB=file:///<directory> is an unpacked https://vuln.go.dev/vulndb.zip
	$(GO) tool -modfile=tools/go.mod govulncheck -db $(VULNDB) ./...

NEWER := {{if and (not .Indirect) .Update}}{{.Path}} {{.Version}} -> {{.Update.Version}}{{end}}
outdated: ## newer versions of what is required directly; CONTRIBUTING.md says which stay, and why
	@$(GO) list -u -m -f '$(NEWER)' all
	@cd tools/chart && $(GO) list -u -m -f '$(NEWER)' all
	@cd tools && $(GO) list -u -m -f '{{if .Update}}{{.Path}} {{.Version}} -> {{.Update.Version}}{{end}}' honnef.co/go/tools golang.org/x/vuln

alerts: ## checks and tests the alert rules with promtool
	deploy/check.sh

verify: lint fresh alerts deployment thorough integration ## all that CI runs

clean: ## removes bin/
	rm -rf bin

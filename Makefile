# What a contributor runs. Each target works in a fresh clone, as an ordinary
# user (with sudo) or as root, and asks nothing.
#
# Variables worth setting:
#   TESTFLAGS='-run TestX -v'   passed to go test
#   TEST_TIMEOUT=20m            per package
#   FUZZTIME=10s  BENCHTIME=1s  BENCHCOUNT=1  SOAK=10m

SHELL := bash

# The nested modules keep their dependencies out of the root's go.mod; `go test
# ./...` does not descend into them, so every target that means "all" loops.
MODULES := . cmd/replicated bench bench/parsers httpsticky/graphql redisstore examples flows

TESTFLAGS    ?=
TEST_TIMEOUT ?= 20m
FUZZTIME     ?= 10s
BENCHTIME    ?= 1s
BENCHCOUNT   ?= 1
SOAK         ?= 10m
GOLANGCI     ?= github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0

# A test that finds no server skips and says what is missing. In CI that would
# make a green run mean nothing, so there each such skip is a failure.
ifeq ($(CI),true)
export REPLICATED_TEST_REQUIRE ?= postgres,mariadb,mysql,pgbouncer,redis
endif

.PHONY: help demo setup test test-driver test-around bench soak fuzz lint

help: ## this list
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/make \1|\2/p' $(firstword $(MAKEFILE_LIST)) | column -t -s '|'

demo: ## a cluster, a workload, and what went where, in under a minute; needs Go only
	@echo "Building the demo (the first time takes about half a minute) ..."
	@go run ./cmd/replicated demo

setup: ## install the database servers that tests start (says what it does, does it once)
	@scripts/setup

# Two packages at a time, which is what two cores stand: the driver's, whose own tests
# take longest, and beside them those of what lies around it.
#
# The root module is tested with GOWORK=off: with the versions its own go.mod
# names, which are what a user gets, not with those a nested module asks for.
# bench/parsers has no goroutines in its tests, and parsers that take long to
# compile: without -race they are compiled once for `make test` and `make lint`.
test: setup ## every test of all modules, with the race detector
	@$(MAKE) --no-print-directory -j 2 test-driver test-around

# Internal packages whose tests on servers would make the first of them take longer.
AROUND = -e /difftest -e /internal/dialect

GOTEST = CGO_ENABLED=1 go test -p 1 -timeout $(TEST_TIMEOUT) $(TESTFLAGS)

test-driver:
	@echo "== go test -race in ., and internal packages"
	@GOWORK=off $(GOTEST) -race . $$(GOWORK=off go list ./internal/... | grep -v $(AROUND))

test-around:
	@GOWORK=off $(GOTEST) -race $$(GOWORK=off go list ./... | grep $(AROUND) -e '/replicated/[^i]')
	@for m in $(filter-out .,$(MODULES)); do \
		race=-race; if [ "$$m" = bench/parsers ]; then race=; fi; \
		echo "== go test $$race in $$m"; \
		( cd "$$m" && $(GOTEST) $$race ./... ) || exit 1; \
	done

bench: ## benchmarks of all modules
	@for m in $(MODULES); do \
		echo "== benchmarks in $$m"; \
		( cd "$$m" && go test -run '^$$' -bench . -benchmem -benchtime $(BENCHTIME) -count $(BENCHCOUNT) ./... ) || exit 1; \
	done

# Each prints its seed. REPLICATED_SEED=… makes the same choices again: the chaos run
# (TestChaosStress) then has the same faults in the same order.
soak: setup ## the stress tests for SOAK (10m) each, with the race detector
	@REPLICATED_SOAK=$(SOAK) CGO_ENABLED=1 go test -race -count 1 -timeout 0 -v -run 'Soak|Stress' ./...

# `go test -fuzz` takes one target of one package at a time.
fuzz: ## every fuzz target for FUZZTIME (10s)
	@set -eu; for p in $$(go list ./... ./httpsticky/graphql/... ./redisstore/...); do \
		listed=$$(go test -list '^Fuzz' "$$p"); \
		for f in $$(grep '^Fuzz' <<<"$$listed" || true); do \
			echo "== $$f in $$p"; \
			go test -run '^$$' -fuzz "^$$f\$$" -fuzztime $(FUZZTIME) "$$p"; \
		done; \
	done

lint: ## gofmt, go vet and golangci-lint (.golangci.yml) in all modules
	@unformatted=$$(gofmt -l .); if [ -n "$$unformatted" ]; then \
		echo "gofmt would change:"; echo "$$unformatted"; exit 1; fi
	@for m in $(MODULES); do \
		echo "== go vet and golangci-lint in $$m"; \
		( cd "$$m" && go vet ./... && go run $(GOLANGCI) run ./... ) || exit 1; \
	done

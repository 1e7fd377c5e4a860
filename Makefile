# `make help` prints the lines with two hashes.
.DEFAULT_GOAL := help
SHELL := bash -o pipefail
.PHONY: help run test lint oldest bench soak fuzz picture build release clean

ARGS     ?=
FUZZTIME ?= 1m
SEEDS    ?= 10

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## /{printf "  make %-7s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: build ## start a sandbox (ARGS="--listen 127.0.0.1:8081" adds flags)
	bin/fiscalhub serve $(ARGS)

test: ## install missing programs, then run all tests on SQLite and PostgreSQL, and a short fuzz run
	scripts/setup
	scripts/test tests fuzz

lint: ## check the format and run golangci-lint (the first run builds it)
	scripts/test format lint

oldest: ## build and vet with the oldest Go release that go.mod allows
	scripts/test oldest

bench: ## measure the service and the limits of this machine (ARGS="creations list" selects)
	go run ./bench $(ARGS)

soak: ## run the long tests: every crash point, SEEDS seeds of a failing authority (default 10), long scenarios
	FISCALHUB_CRASHES=all go test -count=1 -timeout 1h -run '^TestEvery(Crash|Error)Point$$' ./internal/live
	SOAK_SEEDS=$(SEEDS) SOAK_DOCUMENTS=300 go test -count=1 -timeout 2h -run '^TestSoak$$' -v ./internal/live | grep -E 'seed [0-9]+:|^(ok|FAIL|---)'
	SOAK_DOCUMENTS=10000 TOKEN_DOCUMENTS=500 OUTAGE_DOCUMENTS=200 go test -count=1 -timeout 1h -run '^Test(TokenExpiresWithinABatch|ContingencyDuringAnOutage|SoakScenario)$$' -v ./internal/live | grep -E 'seed [0-9]+:|^(ok|FAIL|---)'

fuzz: ## fuzz every target for FUZZTIME (default 1m)
	FUZZTIME=$(FUZZTIME) scripts/test fuzz

picture: ## draw docs/pictures/architecture.svg from the imports and the package table
	go run ./docs/picture

build: ## build the static binary bin/fiscalhub
	scripts/build bin/fiscalhub

release: ## make a release in bin/release (ARGS=check only looks for known weaknesses and stale licences)
	scripts/release $(ARGS)

clean: ## remove bin and the cached test results; data stays
	rm -rf bin
	go clean -testcache

# Each line with two hashes is what `make help` prints.
.DEFAULT_GOAL := help
SHELL := bash -o pipefail
.PHONY: help run test bench soak lint fuzz picture build clean

ARGS     ?=
FUZZTIME ?= 1m
SEEDS    ?= 10

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## /{printf "  make %-7s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: build ## build and start a sandbox (ARGS="--listen 127.0.0.1:8081" adds flags)
	bin/fiscalhub serve $(ARGS)

test: ## install what is missing, then check everything as CI does
	scripts/setup
	scripts/test

bench: ## measure the service beside the floor of this machine (ARGS="creations list" narrows)
	go run ./bench $(ARGS)

soak: ## every crash point, live documents against a misbehaving authority for SEEDS seeds, 10 unless told, then the long scenarios
	FISCALHUB_CRASHES=all go test -count=1 -timeout 1h -run '^TestEveryCrashPoint$$' ./internal/live
	SOAK_SEEDS=$(SEEDS) SOAK_DOCUMENTS=300 go test -count=1 -timeout 2h -run '^TestSoak$$' -v ./internal/live | grep -E 'seed [0-9]+:|^(ok|FAIL|---)'
	SOAK_DOCUMENTS=10000 TOKEN_DOCUMENTS=500 OUTAGE_DOCUMENTS=200 go test -count=1 -timeout 1h -run '^Test(TokenExpiresWithinABatch|ContingencyDuringAnOutage|SoakScenario)$$' -v ./internal/live | grep -E 'seed [0-9]+:|^(ok|FAIL|---)'

lint: ## check format and lint
	scripts/test format lint

fuzz: ## fuzz every target for FUZZTIME, 1m unless told
	FUZZTIME=$(FUZZTIME) scripts/test fuzz

picture: ## draw docs/pictures/architecture.svg from the imports and the package table
	go run ./docs/picture

build: ## build the static binary bin/fiscalhub
	CGO_ENABLED=0 go build -trimpath -o bin/fiscalhub ./cmd/fiscalhub

clean: ## remove what was built; data stays
	rm -rf bin
	go clean -testcache

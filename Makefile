# `make help` prints the lines with two hashes.
.DEFAULT_GOAL := help
SHELL := bash -o pipefail
.PHONY: help run test lint oldest bench soak failover restores contingency-failover upgrade-proof power partitions coverage fuzz pictures metrics generated-clients build release check-release dashboards-check clean typescript-client histories kills bench-peers performance simulate planted

ARGS     ?=
FUZZTIME ?= 1m
SEEDS    ?= 10
PREVIOUS ?= 4d3cc36

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-20s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: build ## start a sandbox (ARGS="--listen 127.0.0.1:8081" adds flags)
	bin/fiscalhub serve $(ARGS)

test: ## install missing programs, then run all tests on SQLite and PostgreSQL
	scripts/setup
	scripts/test tests

lint: ## check the format and run golangci-lint (the first run builds it)
	scripts/test format lint

oldest: ## build and vet with the oldest Go release that go.mod allows
	scripts/test oldest

bench: ## measure the service and the limits of this machine (ARGS="creations list" selects)
	go run ./bench $(ARGS)

bench-peers: ## measure dgii-ecf, PocketBase and River, from their public registries, in turns with the service (needs the network, Node and npm)
	go run ./bench -out bin/bench-peers peers

performance: ## write docs/performance.md and its chart from the last run of make bench
	go run ./docs/performance bin/bench.json

soak: ## run the long tests: every guard removed, every crash point, SEEDS seeds of a failing authority (default 10), long scenarios, large backlogs, full overload
	FISCALHUB_MUTATIONS=1 go test -count=1 -timeout 1h -run '^TestMutations$$' -v ./internal/live | grep -E 'seen by|^(ok|FAIL|---)'
	FISCALHUB_CRASHES=all go test -count=1 -timeout 1h -run '^Test(Every(Crash|Error)Point|.*Survives?EveryPoint)$$' ./internal/live
	SOAK_SEEDS=$(SEEDS) SOAK_DOCUMENTS=300 go test -count=1 -timeout 2h -run '^TestSoak$$' -v ./internal/live | grep -E 'seed [0-9]+:|^(ok|FAIL|---)'
	SOAK_DOCUMENTS=10000 TOKEN_DOCUMENTS=500 OUTAGE_DOCUMENTS=200 go test -count=1 -timeout 1h -run '^Test(TokenExpiresWithinABatch|ContingencyDuringAnOutage|SoakScenario)$$' -v ./internal/live ./internal/watch | grep -E 'seed [0-9]+:|^(ok|FAIL|---)'
	RECOVERY_DOCUMENTS=10000 go test -count=1 -timeout 1h -run '^TestRecoveryAfterAnOutage$$' -v ./internal/live | grep -E ' documents: |^(ok|FAIL|---)'
	BACKLOG_JOBS=1000000 REPLAY_EVENTS=20500 MIGRATION_KILLS=40 go test -count=1 -timeout 1h -run '^Test(APostgresClaimDoesNotReadTheBacklog|AReplayRunsInBoundedBatches|ADatabaseOpensAfterAKillDuringMigration)$$' -v ./internal/store | grep -E ' blocks |^(ok|FAIL|---)'
	CLIENT_INVOICES=1000 POS_KILLS=100 go test -count=1 -timeout 30m -run '^Test((Go|TypeScript|Python)ClientCreatesEachInvoiceOnce|PointOfSaleSurvivesKills)$$' -v ./systemtest | grep -E ' creations, | kills, |^(ok|FAIL|---)'
	SEND_INVOICES=10000 EXPORT_DOCUMENTS=10000 go test -count=1 -timeout 30m -run '^TestKilled(SendMakesEachInvoiceOnce|ExportIsCompleteAndValid)$$' -v ./systemtest | grep -E ' invoices sent | documents (accepted|exported) | export verify |^(ok|FAIL|---)'
	MEMORY_MIX=full go test -count=1 -timeout 10m -run '^TestMemoryStaysBelowTheLimit$$' -v ./systemtest | grep -E 'peak|^(ok|FAIL|---)'
	OVERLOAD_FACTOR=16 go test -count=1 -timeout 10m -run '^Test(SlowReadersDoNotDelayOthers|SlowWritersDoNotDelayOthers|LargeCreationsDoNotDelayOthers|OverloadIsRefusedAndLosesNothing|OneCredentialCannotTakeAllSlots|KeysOfOneTaxpayerCannotStarveAnother|AllDatabaseConnectionsInUse)$$' ./internal/api

failover: ## kill PostgreSQL under load and promote its standby, RUNS times (default 10) for each kind of standby
	FAILOVER_RUNS=$(or $(RUNS),10) go test -count=1 -timeout 3h -run '^TestFailoverTo' -v ./systemtest

restores: ## restore an older backup after a contingency with printed pages, RUNS times (default 20), and look for a number with two sales
	RESTORE_RUNS=$(or $(RUNS),20) go test -count=1 -timeout 6h -run '^TestRestoresInAContingency$$' -v ./systemtest | grep --line-buffered -vE '^ *=== '

contingency-failover: ## promote a standby that missed a contingency with printed pages, RUNS times (default 20), and look for a number with two sales
	FAILOVER_RUNS=$(or $(RUNS),20) go test -count=1 -timeout 6h -run '^TestFailoversInAContingency$$' -v ./systemtest | grep --line-buffered -vE '^ *=== '

upgrade-proof: ## replace nodes of the commit PREVIOUS under load, RUNS times (default 5)
	UPGRADE_RUNS=$(or $(RUNS),5) UPGRADE_PREVIOUS=$(PREVIOUS) go test -count=1 -timeout 3h -run '^TestRollingUpgrade$$' -v ./systemtest

histories: ## check that RUNS histories (default 100) of 64 clients are linearizable on each engine, with kills and cut connections
	HISTORY_RUNS=$(or $(RUNS),100) go test -count=1 -timeout 3h -run '^TestHistories' -v ./systemtest | grep --line-buffered -vE '^ *=== '

kills: ## kill the service RUNS times (default 50) under load and compare all invoices with the authority (ENGINE=sqlite or postgres; default both)
	KILL_RUNS=$(or $(RUNS),50) KILL_ENGINE=$(ENGINE) go test -count=1 -timeout 6h -run '^TestKillsUnderLoad$$' -v ./systemtest | grep --line-buffered -vE '^ *=== '

power: ## cut the power of the disk under load, RUNS times (default 20), for both engines or ENGINE=sqlite or postgres
	POWER_RUNS=$(or $(RUNS),20) POWER_ENGINE=$(ENGINE) go test -count=1 -timeout 6h -run '^TestPowerLoss' -v ./systemtest | grep --line-buffered -vE '^ *=== '

partitions: ## let the network of a cluster fail under load, RUNS times (default 12); needs root
	PARTITION_RUNS=$(or $(RUNS),12) go test -count=1 -timeout 6h -run '^TestPartitions$$' -v ./systemtest | grep --line-buffered -vE '^ *=== '

simulate: ## run SEEDS new seeds of the simulation (default 10), or from FIRST on; TRACE=1 prints what happens
	cd internal/simulation && SIMULATE_SEEDS=$(SEEDS) SIMULATE_FIRST=$(FIRST) SIMULATE_TRACE=$(TRACE) go test -count=1 -timeout 12h -run '^TestSimulate$$' -v . | grep --line-buffered -vE '^(=== RUN|    --- PASS)'

planted: ## build the simulation with each planted bug, or with NAME, and run up to 1,000 seeds until one shows it
	cd internal/simulation && PLANTED=$(or $(NAME),all) go test -count=1 -timeout 12h -run '^TestPlanted$$' -v . | grep --line-buffered -E '^(planted|ok|FAIL|---| +--- FAIL)|not found'

coverage: ## print what the tests of each package under internal/ cover of it, and fail below 70 % (packages that serve tests are left out)
	go test -cover ./internal/... | awk '/coverage:/ && !/test[\t ]/ && !/simulation/ {match($$0, /[0-9.]+%/); c = substr($$0, RSTART, RLENGTH); n = $$1 ~ /^ok/ ? $$2 : $$1; print c, n; if (c + 0 < 70) low = 1} /FAIL/ {print; low = 1} END {exit low}'

fuzz: ## fuzz every target for FUZZTIME (default 1m)
	FUZZTIME=$(FUZZTIME) scripts/test fuzz

pictures: ## take the pictures of the page /docs in docs/pictures
	go test -count=1 -run '^TestDocsInABrowser$$' ./internal/api -pictures

generated-clients: ## generate clients from the OpenAPI document with oapi-codegen and openapi-typescript, and compile them (needs the network)
	scripts/generated-clients

typescript-client: ## build the TypeScript client, check its types, and install it as its users do (npm downloads its tools once)
	scripts/typescript-client

metrics: ## write docs/metrics.md from the catalogue of metrics
	go run ./docs/metrics

build: ## build the static binary bin/fiscalhub
	scripts/build bin/fiscalhub

check-release: ## check the packages of a release as far as this machine can (ARGS=--install gets missing tools)
	scripts/check-release $(ARGS)

dashboards-check: ## test the alerts, and ask a Prometheus every query of the dashboards after the demo (ARGS=--install gets Prometheus)
	scripts/check-deploy $(ARGS)

release: ## make a release in bin/release (ARGS=check only looks for known vulnerabilities and stale licences)
	scripts/release $(ARGS)

clean: ## remove bin and the cached test results; data stays
	rm -rf bin
	go clean -testcache

package metric

func database() []Definition {
	return []Definition{
		{Group: Database, Name: CommitTime, Type: Histogram, Labels: []Label{{Name: "outcome", Values: []string{"committed", "rolled_back", "failed"}}},
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
			Help:    "Transactions of this node that write, from their start to their end. A rolled back one ended by a rule, for example a repeated key; a failed one by the database.",
			Bad:     "The 99th percentile of `committed` is above 0.1: the disk or the database server is slow. `failed` grows: the log says why."},
		{Group: Database, Name: CommitTotal, Type: Counter,
			Help: "Commits of this node. Transactions that share a commit count once: divide the transactions of `fiscalhub_commit_seconds` by it. Each commit waits for the disk.",
			Bad:  "Nothing by itself. It grows faster than the load: transactions share fewer commits, because there are fewer at a time."},
		{Group: Database, Name: StatementTotal, Type: Counter,
			Help: "Statements of this node that read or write.",
			Bad:  "Nothing by itself. It grows while nothing happens: a page or a monitor asks too often."},
		{Group: Database, Name: FiguresRead, Type: Gauge,
			Help: "1 when this scrape has figures of the database, 0 when they could not be read within two seconds. The other figures of the database are then missing.",
			Bad:  "0: the database is down or overloaded; see `/readyz` and the log."},
	}
}

func requests() []Definition {
	part := Label{Name: "part", Of: "a part of the capacity, see [Limits](operations/start.md#limits)"}
	return []Definition{
		{Group: Requests, Name: RequestTotal, Type: Counter, Labels: []Label{
			{Name: "route", Of: "the pattern of the path, or `unknown`"}, {Name: "method", Of: "a known method, or `OTHER`"},
			{Name: "status", Of: "the HTTP status"}, {Name: "code", Of: "the error code, empty for a success"}},
			Help: "Requests answered, by route, method, status and error code.",
			Bad:  "`status` 500 grows: a bug; the log line has the `request_id`. 503 grows: the database or the capacity, see `fiscalhub_http_shed_total`."},
		{Group: Requests, Name: RequestTime, Type: Histogram, Labels: []Label{
			{Name: "route", Of: "the pattern of the path, or `unknown`"}, {Name: "method", Of: "a known method, or `OTHER`"}},
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
			Help:    "Time from the first byte of a request to its answer. Requests that wait for a verdict or an event count with their wait.",
			Bad:     "The 99th percentile of creations is above 0.5: compare it with `fiscalhub_commit_seconds` and `fiscalhub_capacity_waiting`."},
		{Group: Requests, Name: InFlight, Type: Gauge,
			Help: "Requests being answered now.",
			Bad:  "Grows without end: look for what they wait for in `fiscalhub_capacity_waiting`."},
		{Group: Requests, Name: ShedTotal, Type: Counter, Labels: []Label{{Name: "bound", Values: []string{"service", "strangers", "address", "credential", "taxpayer"}}},
			Help: "Requests refused because the service, the strangers, an address, a credential or a taxpayer had no capacity left.",
			Bad:  "`service` grows: the machine is too small, or the database is slow. The others: one client sends too much at once; the log names the credential."},
		{Group: Requests, Name: ReplayTotal, Type: Counter,
			Help: "Creations answered with the stored answer of an earlier request.",
			Bad:  "Grows fast: a client repeats requests; its network or its timeouts need a look."},
		{Group: Requests, Name: RefusedTotal, Type: Counter, Labels: []Label{{Name: "reason", Values: []string{
			"missing", "malformed", "unknown", "wrong_secret", "revoked", "expired", "suspended", "altered",
			"wrong_environment", "wrong_address", "wrong_certificate", "wrong_signature", "wrong_time", "wrong_token", "wrong_seed"}}},
			Help: "Refused requests, by reason: a wrong API key, a wrong signature of a source, a wrong token or signed seed at `/fe`.",
			Bad:  "`revoked`, `wrong_address`, `wrong_certificate`: a key may be stolen; see `fiscalhub audit list`. `altered`: the row of a credential was changed in the database. `expired`: rotate it. `wrong_signature`, `wrong_time`: a source signs with an old secret or has a wrong clock, or somebody else writes in its name; the log names the source. `wrong_token`, `wrong_seed`: another taxpayer cannot authenticate at `/fe`; the log has its address."},
		{Group: Requests, Name: CapacityUsed, Type: Gauge, Labels: []Label{part},
			Help: "What requests and connections hold now, by part of the capacity.",
			Bad:  "Near `fiscalhub_capacity_limit` for minutes: requests wait and are refused."},
		{Group: Requests, Name: CapacityLimit, Type: Gauge, Labels: []Label{part},
			Help: "The most that requests and connections may hold, by part of the capacity.",
			Bad:  "It is constant; it follows the memory and the processors of the machine."},
		{Group: Requests, Name: CapacityWaiting, Type: Gauge, Labels: []Label{part},
			Help: "Requests that wait, by part of the capacity.",
			Bad:  "Above 0 for minutes: see `fiscalhub_http_shed_total`."},
		{Group: Requests, Name: RequestLogDropped, Type: Counter, Labels: []Label{{Name: "reason", Values: []string{"queue_full", "not_written"}}},
			Help: "Requests that the log of the console lacks, because the queue was full or the database did not take them. The requests themselves were answered.",
			Bad:  "`queue_full` grows at high load: that is by design. `not_written` grows: the database refuses writes; the log says why."},
	}
}

func program() []Definition {
	return []Definition{
		{Group: Program, Name: BuildInfo, Type: Gauge, Labels: []Label{
			{Name: "version", Of: "the version"}, {Name: "revision", Of: "the commit, if known"}, {Name: "go_version", Of: "the Go release"},
			{Name: "environment", Of: "the environment that the process serves"}, {Name: "engine", Of: "`sqlite` or `postgres`"}},
			Help: "Always 1. The labels say which program this is.",
			Bad:  "Nodes with different versions for longer than an upgrade takes."},
	}
}

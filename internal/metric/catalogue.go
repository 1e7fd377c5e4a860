package metric

import "slices"

// The names of the metrics.
const (
	Jobs           = "fiscalhub_jobs"
	JobAge         = "fiscalhub_job_age_seconds"
	JobLag         = "fiscalhub_job_lag_seconds"
	StageTime      = "fiscalhub_stage_seconds"
	VerdictTime    = "fiscalhub_verdict_seconds"
	OverdueTotal   = "fiscalhub_documents_overdue_total"
	ExchangeTime   = "fiscalhub_authority_exchange_seconds"
	CircuitOpen    = "fiscalhub_authority_circuit_open"
	Contingency    = "fiscalhub_contingency"
	PeerTotal      = "fiscalhub_peer_authentications_total"
	ResponseTotal  = "fiscalhub_commercial_responses_total"
	CompareTotal   = "fiscalhub_comparisons_total"
	DifferentTotal = "fiscalhub_differences_total"
	LastCompared   = "fiscalhub_comparison_last_timestamp_seconds"
	CompareLag     = "fiscalhub_comparison_lag_seconds"

	Deliveries           = "fiscalhub_webhook_deliveries"
	DeliveryAge          = "fiscalhub_webhook_delivery_age_seconds"
	AttemptTime          = "fiscalhub_webhook_attempt_seconds"
	Endpoints            = "fiscalhub_webhook_endpoints"
	CertificateRemaining = "fiscalhub_certificate_remaining_seconds"
	TaxpayersExpiring    = "fiscalhub_taxpayers_certificate_expiring"
	NumbersLeft          = "fiscalhub_numbers_left"
	TaxpayersLow         = "fiscalhub_taxpayers_numbers_low"
	FencedRanges         = "fiscalhub_fenced_ranges"

	CommitTime      = "fiscalhub_commit_seconds"
	CommitTotal     = "fiscalhub_database_commits_total"
	StatementTotal  = "fiscalhub_database_statements_total"
	FiguresRead     = "fiscalhub_database_figures_read"
	RequestTotal    = "fiscalhub_http_requests_total"
	RequestTime     = "fiscalhub_http_request_seconds"
	InFlight        = "fiscalhub_http_requests_in_flight"
	ShedTotal       = "fiscalhub_http_shed_total"
	ReplayTotal     = "fiscalhub_idempotent_replays_total"
	RefusedTotal    = "fiscalhub_authentication_failures_total"
	CapacityUsed    = "fiscalhub_capacity_used"
	CapacityLimit   = "fiscalhub_capacity_limit"
	CapacityWaiting = "fiscalhub_capacity_waiting"
	BuildInfo       = "fiscalhub_build_info"

	RequestLogDropped = "fiscalhub_request_log_dropped_total"
)

// Stages returns the stages of a live document. They have figures from the start.
func Stages() []string { return []string{"issue", "submit", "poll", "reconcile", "deliver"} }

// JobStates returns the values of the label state of Jobs.
func JobStates() []string { return []string{"waiting", "running", "suspended", "held"} }

// EndpointStatuses returns the values of the label status of Endpoints and Deliveries.
func EndpointStatuses() []string { return []string{"enabled", "failing", "disabled"} }

// All returns the whole catalogue, in the order of the page.
func All() []Definition {
	return slices.Concat(documents(), authority(), webhooks(), preparation(), database(), requests(), program())
}

func documents() []Definition {
	stage := Label{Name: "stage", Of: "`issue`, `submit`, `poll`, `reconcile` or `deliver`; in the sandbox the next status of a `Sandbox-Scenario`"}
	state := Label{Name: "state", Values: JobStates()}
	return []Definition{
		{Group: Documents, Name: Jobs, Type: Gauge, Labels: []Label{stage, state},
			Help: "Documents that wait for their next stage, that a worker is processing, that wait until the tax authority answers, or that are held until a person decides. Counts at most 10,000 of each queue and state.",
			Bad:  "`waiting` grows for minutes: the workers are slower than the creations. Look at `fiscalhub_stage_seconds` and `fiscalhub_commit_seconds` for what is slow. `suspended` is normal during an outage of the authority. `held` above 0: see [Documents are held](runbooks/FiscalhubDocumentsHeld.md)."},
		{Group: Documents, Name: JobAge, Type: Gauge, Labels: []Label{stage, state},
			Help: "Time since the oldest document of the stage was created.",
			Bad:  "Above 900 in `submit`, `poll` or `reconcile`: a document has no verdict for long. `fiscalhub work list` shows which, and `fiscalhub work show ID` why."},
		{Group: Documents, Name: JobLag, Type: Gauge, Labels: []Label{{Name: "queue", Values: []string{"main", "deliver"}}},
			Help: "For how long the first due document of the queue has waited for a worker; 0 when none is due.",
			Bad:  "Above 10 for minutes: all workers are busy or the database is slow. Add a node (PostgreSQL), or find the slow stage with `fiscalhub_stage_seconds`."},
		{Group: Documents, Name: StageTime, Type: Histogram, Labels: []Label{stage, {Name: "outcome", Of: "`done`, `waiting` (it continues later, and nothing failed), `suspended` (the authority does not answer), `failed` (it is tried again) or `lease_lost` (another worker has the document)"}},
			Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60},
			Help:    "Time of one stage of one document on this node, with its commit.",
			Bad:     "`failed` grows: the log line \"A stage failed\" has the reason. `lease_lost` grows: nodes stall, or their clocks differ."},
		{Group: Documents, Name: VerdictTime, Type: Histogram, LiveOnly: true, Labels: []Label{{Name: "status", Values: []string{"accepted", "accepted_conditional", "rejected", "validation_failed"}}},
			Buckets: []float64{.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600, 14400, 86400, 259200},
			Help:    "Time from the creation of an invoice to its verdict, for verdicts that this node committed.",
			Bad:     "The 95th percentile is above 60: compare it with `fiscalhub_authority_exchange_seconds`. Many `rejected`: read the reasons with `fiscalhub history`."},
		{Group: Documents, Name: OverdueTotal, Type: Counter, LiveOnly: true, Labels: []Label{{Name: "reason", Values: []string{"no_verdict_for_15_minutes", "outcome_unknown_for_24_hours"}}},
			Help: "Documents that had no verdict for 15 minutes, or an unknown outcome for 24 hours, by reason.",
			Bad:  "Every increase: look at the document with `fiscalhub work show`, then see [Documents that wait](operations/waiting.md)."},
	}
}

func authority() []Definition {
	return []Definition{
		{Group: Authority, Name: ExchangeTime, Type: Histogram, LiveOnly: true, Labels: []Label{
			{Name: "service", Of: "the service of the authority: `auth`, `reception`, `rfce`, `result`, `state`, `trackids`, `consultarfce`, `directory`; `peer` for buyers"},
			{Name: "outcome", Of: "`ok`, `refused` (3xx, 4xx), `rate_limited` (429), `server_error` (5xx), `not_sent` or `lost` (sent, and no complete answer)"}},
			Buckets: []float64{0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60},
			Help:    "Exchanges with the tax authority and with buyers, by service and outcome.",
			Bad:     "`server_error`, `not_sent` and `lost` grow: the authority or the network has a problem; documents wait and are sent later. `rate_limited` grows: fewer nodes or a slower pace. `refused` of `auth`: check the certificate and the delegation."},
		{Group: Authority, Name: CircuitOpen, Type: Gauge, LiveOnly: true, Labels: []Label{{Name: "service", Of: "as above, without `peer`"}},
			Help: "1 while this node does not call a service of the authority, because five calls in a row failed; one call in ten seconds tests it.",
			Bad:  "1 for more than a minute: check the network of this node, then the authority's notices. The circuit closes by itself."},
		{Group: Authority, Name: Contingency, Type: Gauge, LiveOnly: true,
			Help: "1 while a contingency lasts: the tax authority is out of reach of all nodes.",
			Bad:  "1: nothing to do for documents, they wait and are sent automatically. Tell the users of the service when it lasts."},
		{Group: Authority, Name: PeerTotal, Type: Counter, LiveOnly: true, Labels: []Label{{Name: "outcome", Values: []string{"token", "no_token", "not_signed"}}},
			Help: "Demands of buyers' receivers for a token, by outcome. For token and no_token the service signed a seed of the receiver.",
			Bad:  "`no_token` grows: receivers of buyers refuse the token; the log names them."},
		{Group: Authority, Name: ResponseTotal, Type: Counter, Labels: []Label{{Name: "outcome", Values: []string{"stands", "contradicts", "unconfirmed", "repeated", "too_many"}}},
			Help: "Commercial responses to documents of ours, by outcome.",
			Bad:  "`unconfirmed` grows: confirm the signers of buyers with `fiscalhub buyer confirm`. `too_many` grows: a sender floods the service with responses."},
		{Group: Authority, Name: CompareTotal, Type: Counter, LiveOnly: true, Labels: []Label{{Name: "result", Values: []string{"equal", "different", "skipped", "deferred"}}},
			Help: "Accepted documents that this node compared with the tax authority, by result. The figures of the comparison are missing with --compare-rate 0.",
			Bad:  "Only `deferred` grows: the authority does not answer the look-ups. Only `skipped` grows: the log says why."},
		{Group: Authority, Name: DifferentTotal, Type: Counter, LiveOnly: true, Labels: []Label{{Name: "kind", Values: []string{"not_found", "state", "security_code", "total", "buyer"}}},
			Help: "Accepted documents that the tax authority shows differently, by kind of difference. Each is an alarm.",
			Bad:  "Every increase: see [Accepted documents that the authority shows differently](operations/waiting.md#accepted-documents-that-the-authority-shows-differently)."},
		{Group: Authority, Name: LastCompared, Type: Gauge, LiveOnly: true,
			Help: "When any node last compared a document with the tax authority, in seconds since 1970.",
			Bad:  "Hours ago while documents are accepted: look for warnings about the comparison in the log."},
		{Group: Authority, Name: CompareLag, Type: Gauge, LiveOnly: true,
			Help: "For how long the next accepted document has been due for its first comparison; 0 when none is due.",
			Bad:  "Grows for days: raise `--compare-rate`."},
	}
}

func webhooks() []Definition {
	status := Label{Name: "status", Values: EndpointStatuses()}
	return []Definition{
		{Group: Webhooks, Name: Deliveries, Type: Gauge, LiveOnly: true, Labels: []Label{status},
			Help: "Deliveries to webhook endpoints that are not done, by the status of their endpoint. Counts at most 10,000.",
			Bad:  "`enabled` grows: the sender is slower than the events. `disabled` grows: integrators must enable their endpoints; `fiscalhub webhook list` shows them."},
		{Group: Webhooks, Name: DeliveryAge, Type: Gauge, LiveOnly: true, Labels: []Label{status},
			Help: "Time since the oldest of these deliveries was created; 0 without one.",
			Bad:  "`enabled` above 60: the sender does not keep up. `failing` above 86400: tell the integrator; deliveries end after three days."},
		{Group: Webhooks, Name: AttemptTime, Type: Histogram, LiveOnly: true, Labels: []Label{{Name: "result", Values: []string{"delivered", "retried", "failed"}}},
			Buckets: []float64{.025, .05, .1, .25, .5, 1, 2.5, 5, 10, 20},
			Help:    "Attempts of this node to deliver an event to a webhook endpoint, by result. After retried another attempt follows; failed was the last one.",
			Bad:     "`failed` grows: events are lost for an integrator, who can read them from the feed or ask for a replay. `retried` grows for all endpoints: the network of this node has a problem."},
		{Group: Webhooks, Name: Endpoints, Type: Gauge, LiveOnly: true, Labels: []Label{status},
			Help: "Webhook endpoints. The last delivery to a failing one failed.",
			Bad:  "`disabled` grows: the service gave up on endpoints; `fiscalhub webhook list` names them."},
	}
}

func preparation() []Definition {
	kind := Label{Name: "ecf_type", Values: []string{"31", "32"}}
	return []Definition{
		{Group: Preparation, Name: CertificateRemaining, Type: Gauge, LiveOnly: true,
			Help: "Time until the first taxpayer has no valid certificate, negative when one has none already. Of each taxpayer the certificate that lasts longest counts. Divide by 86400 for days.",
			Bad:  "Below 30 days (2592000): import the successor with `fiscalhub certificate import`. `fiscalhub certificate list` shows whose it is."},
		{Group: Preparation, Name: TaxpayersExpiring, Type: Gauge, LiveOnly: true, Labels: []Label{{Name: "within", Values: []string{"0d", "7d", "30d"}}},
			Help: "Taxpayers whose last certificate ends within this time. 0d counts those whose certificate has expired.",
			Bad:  "`7d` above 0: import the successors now. `0d` above 0: these taxpayers cannot issue."},
		{Group: Preparation, Name: NumbersLeft, Type: Gauge, LiveOnly: true, Labels: []Label{kind},
			Help: "The fewest numbers that a taxpayer with a number range of the type has left.",
			Bad:  "0: this taxpayer cannot issue. `fiscalhub range list` shows whose range it is; add the next one with `fiscalhub range add`."},
		{Group: Preparation, Name: TaxpayersLow, Type: Gauge, LiveOnly: true, Labels: []Label{kind},
			Help: "Taxpayers that have fewer than 100 numbers of the type left.",
			Bad:  "Above 0: ask the authority for more numbers."},
		{Group: Preparation, Name: FencedRanges, Type: Gauge, LiveOnly: true,
			Help: "Number ranges that give no numbers, because the database may be older than what was sent.",
			Bad:  "Above 0: see [After a restore](operations/restore.md#after-a-restore). Taxpayers cannot issue from these ranges."},
	}
}

package main

import "fmt"

// line returns one query.
func line(expr, legend string) []query { return []query{{expr, legend}} }

// quantiles returns the median and the 95th and 99th percentile of a histogram.
func quantiles(metric, selector string) []query {
	var list []query
	for _, q := range []struct{ at, name string }{{"0.5", "50 %"}, {"0.95", "95 %"}, {"0.99", "99 %"}} {
		list = append(list, query{fmt.Sprintf("histogram_quantile(%s, sum by (le) (rate(%s_bucket%s[5m])))", q.at, metric, selector), q.name})
	}
	return list
}

// rate returns the events per second of a counter, by a label.
func rate(metric, by string) []query {
	return line(fmt.Sprintf("sum by (%s) (rate(%s[5m]))", by, metric), "{{"+by+"}}")
}

func dashboards() []dashboard {
	return []dashboard{service(), pipeline(), authority(), webhooks(), taxpayers()}
}

func service() dashboard {
	return dashboard{"service", "Service", "Requests, errors, capacity, the database and the process.", []row{
		{"Now", []panel{
			{title: "Nodes", unit: "short", single: true, queries: line("sum(up{job=\"fiscalhub\"})", "")},
			{title: "Errors, last hour", about: "Answers with a status of 500 or more. The objective is below 0.1 %.", unit: "percentunit", single: true, warn: 0.001,
				queries: line(`(sum(rate(fiscalhub_http_requests_total{status=~"5.."}[1h])) or vector(0)) / sum(rate(fiscalhub_http_requests_total[1h]))`, "")},
			{title: "Versions", unit: "short", single: true, queries: line("count by (version, revision) (fiscalhub_build_info)", "{{version}} {{revision}}")},
			{title: "Database can be read", about: "0: a node cannot read the figures of the database.", unit: "short", single: true, queries: line("min(fiscalhub_database_figures_read)", "")},
		}},
		{"Requests", []panel{
			{title: "Requests by status", unit: "reqps", queries: rate("fiscalhub_http_requests_total", "status")},
			{title: "Requests by route", unit: "reqps", queries: rate("fiscalhub_http_requests_total", "route")},
			{title: "Time of creations", unit: "s", queries: quantiles("fiscalhub_http_request_seconds", `{method="POST"}`)},
			{title: "Requests in flight", unit: "short", queries: line("sum(fiscalhub_http_requests_in_flight)", "requests")},
		}},
		{"Refusals", []panel{
			{title: "Refused for lack of capacity", unit: "reqps", queries: rate("fiscalhub_http_shed_total", "bound")},
			{title: "Refused keys", unit: "reqps", queries: rate("fiscalhub_authentication_failures_total", "reason")},
			{title: "Repeated creations", about: "Creations that were answered with a stored answer.", unit: "reqps", queries: line("sum(rate(fiscalhub_idempotent_replays_total[5m]))", "replays")},
			{title: "Requests missing in the log of the console", unit: "reqps", queries: rate("fiscalhub_request_log_dropped_total", "reason")},
		}},
		{"Capacity", []panel{
			{title: "Used part", unit: "percentunit", warn: 0.9, queries: line("max by (part) (fiscalhub_capacity_used / fiscalhub_capacity_limit)", "{{part}}")},
			{title: "Waiting requests", unit: "short", queries: line("sum by (part) (fiscalhub_capacity_waiting)", "{{part}}")},
		}},
		{"Database and process", []panel{
			{title: "Time of commits", unit: "s", queries: quantiles("fiscalhub_commit_seconds", `{outcome="committed"}`)},
			{title: "Transactions", unit: "ops", queries: rate("fiscalhub_commit_seconds_count", "outcome")},
			{title: "Memory", unit: "bytes", queries: line(`process_resident_memory_bytes{job="fiscalhub"}`, "{{instance}}")},
			{title: "Processor", unit: "short", queries: line(`rate(process_cpu_seconds_total{job="fiscalhub"}[5m])`, "{{instance}}")},
		}},
	}}
}

func pipeline() dashboard {
	return dashboard{"pipeline", "Pipeline", "Documents on their way from the creation to the verdict.", []row{
		{"Now", []panel{
			{title: "Oldest document without a verdict", unit: "s", single: true, warn: 900, queries: line(`max(fiscalhub_job_age_seconds{stage=~"submit|poll|reconcile"})`, "")},
			{title: "Documents that wait", unit: "short", single: true, queries: line(`sum(max by (stage) (fiscalhub_jobs{state="waiting"}))`, "")},
			{title: "Suspended documents", about: "They wait until the authority answers.", unit: "short", single: true, warn: 1, queries: line(`sum(max by (stage) (fiscalhub_jobs{state="suspended"}))`, "")},
			{title: "Overdue documents, last day", unit: "short", single: true, warn: 1, queries: line("sum(increase(fiscalhub_documents_overdue_total[1d]))", "")},
		}},
		{"Queues", []panel{
			{title: "Documents by stage", unit: "short", queries: line("sum by (stage) (max by (stage, state) (fiscalhub_jobs))", "{{stage}}")},
			{title: "Documents by state", unit: "short", queries: line("sum by (state) (max by (stage, state) (fiscalhub_jobs))", "{{state}}")},
			{title: "Age of the oldest document", unit: "s", queries: line("max by (stage) (fiscalhub_job_age_seconds)", "{{stage}}")},
			{title: "Wait for a worker", unit: "s", warn: 30, queries: line("max by (queue) (fiscalhub_job_lag_seconds)", "{{queue}}")},
		}},
		{"Stages", []panel{
			{title: "Stages by outcome", unit: "ops", queries: line("sum by (stage, outcome) (rate(fiscalhub_stage_seconds_count[5m]))", "{{stage}} {{outcome}}")},
			{title: "Time of stages, 95 %", unit: "s", queries: line("histogram_quantile(0.95, sum by (le, stage) (rate(fiscalhub_stage_seconds_bucket[5m])))", "{{stage}}")},
		}},
		{"Verdicts", []panel{
			{title: "Verdicts", unit: "ops", queries: rate("fiscalhub_verdict_seconds_count", "status")},
			{title: "Time from the creation to the verdict", unit: "s", queries: quantiles("fiscalhub_verdict_seconds", "")},
			{title: "Rejected part, last hour", unit: "percentunit", warn: 0.1,
				queries: line(`sum(rate(fiscalhub_verdict_seconds_count{status="rejected"}[1h])) / sum(rate(fiscalhub_verdict_seconds_count[1h]))`, "rejected")},
			{title: "Documents that became overdue", unit: "short", queries: line("sum by (reason) (increase(fiscalhub_documents_overdue_total[1h]))", "{{reason}}")},
		}},
	}}
}

func authority() dashboard {
	return dashboard{"authority", "Tax authority", "Exchanges with the tax authority and with buyers.", []row{
		{"Now", []panel{
			{title: "Contingency", about: "1: the authority is out of reach of all nodes.", unit: "short", single: true, warn: 1, queries: line("max(fiscalhub_contingency)", "")},
			{title: "Open circuits", about: "Services that a node does not call.", unit: "short", single: true, warn: 1, queries: line("sum(max by (service) (fiscalhub_authority_circuit_open))", "")},
			{title: "Differences, last day", about: "Accepted documents that the authority shows differently.", unit: "short", single: true, warn: 1, queries: line("sum(increase(fiscalhub_differences_total[1d]))", "")},
			{title: "Delay of the comparison", unit: "s", single: true, queries: line("max(fiscalhub_comparison_lag_seconds)", "")},
		}},
		{"Exchanges", []panel{
			{title: "Exchanges by service", unit: "reqps", queries: rate("fiscalhub_authority_exchange_seconds_count", "service")},
			{title: "Exchanges by outcome", unit: "reqps", queries: rate("fiscalhub_authority_exchange_seconds_count", "outcome")},
			{title: "Time by service, 95 %", unit: "s", queries: line("histogram_quantile(0.95, sum by (le, service) (rate(fiscalhub_authority_exchange_seconds_bucket[5m])))", "{{service}}")},
			{title: "Failed part", unit: "percentunit", queries: line(`(sum(rate(fiscalhub_authority_exchange_seconds_count{outcome=~"server_error|not_sent|lost"}[5m])) or vector(0)) / sum(rate(fiscalhub_authority_exchange_seconds_count[5m]))`, "failed")},
		}},
		{"Reach", []panel{
			{title: "Circuits", unit: "short", queries: line("max by (service) (fiscalhub_authority_circuit_open)", "{{service}}")},
			{title: "Contingency", unit: "short", queries: line("max(fiscalhub_contingency)", "contingency")},
		}},
		{"Comparison and buyers", []panel{
			{title: "Comparisons", unit: "ops", queries: rate("fiscalhub_comparisons_total", "result")},
			{title: "Last comparison", unit: "dateTimeAsIso", single: true, queries: line("1000 * max(fiscalhub_comparison_last_timestamp_seconds)", "")},
			{title: "Commercial responses", unit: "ops", queries: rate("fiscalhub_commercial_responses_total", "outcome")},
			{title: "Tokens for buyers", unit: "ops", queries: rate("fiscalhub_peer_authentications_total", "outcome")},
		}},
	}}
}

func webhooks() dashboard {
	return dashboard{"webhooks", "Webhooks", "Deliveries of events to the endpoints of integrators.", []row{
		{"Now", []panel{
			{title: "Endpoints", unit: "short", single: true, queries: line("max by (status) (fiscalhub_webhook_endpoints)", "{{status}}")},
			{title: "Deliveries that wait", unit: "short", single: true, queries: line("max by (status) (fiscalhub_webhook_deliveries)", "{{status}}")},
			{title: "Given up, last day", unit: "short", single: true, warn: 1, queries: line(`sum(increase(fiscalhub_webhook_attempt_seconds_count{result="failed"}[1d]))`, "")},
		}},
		{"Deliveries", []panel{
			{title: "Attempts by result", unit: "ops", queries: rate("fiscalhub_webhook_attempt_seconds_count", "result")},
			{title: "Time of attempts", unit: "s", queries: quantiles("fiscalhub_webhook_attempt_seconds", "")},
			{title: "Oldest delivery", unit: "s", queries: line("max by (status) (fiscalhub_webhook_delivery_age_seconds)", "{{status}}")},
			{title: "Deliveries that wait", unit: "short", queries: line("max by (status) (fiscalhub_webhook_deliveries)", "{{status}}")},
		}},
	}}
}

func taxpayers() dashboard {
	return dashboard{"taxpayers", "Taxpayers", "What taxpayers need to issue: certificates, numbers, ranges without a fence.", []row{
		{"Now", []panel{
			{title: "First certificate ends in", unit: "s", single: true, queries: line("min(fiscalhub_certificate_remaining_seconds)", "")},
			{title: "Taxpayers with an ending certificate", unit: "short", single: true, warn: 1, queries: line("max by (within) (fiscalhub_taxpayers_certificate_expiring)", "{{within}}")},
			{title: "Taxpayers with few numbers", about: "Fewer than 100 numbers of the type.", unit: "short", single: true, warn: 1, queries: line("max by (ecf_type) (fiscalhub_taxpayers_numbers_low)", "type {{ecf_type}}")},
			{title: "Fenced ranges", unit: "short", single: true, warn: 1, queries: line("max(fiscalhub_fenced_ranges)", "")},
		}},
		{"Course", []panel{
			{title: "Fewest numbers left", unit: "short", queries: line("min by (ecf_type) (fiscalhub_numbers_left)", "type {{ecf_type}}")},
			{title: "First certificate ends in", unit: "s", queries: line("min(fiscalhub_certificate_remaining_seconds)", "time left")},
			{title: "Taxpayers with few numbers", unit: "short", queries: line("max by (ecf_type) (fiscalhub_taxpayers_numbers_low)", "type {{ecf_type}}")},
			{title: "Fenced ranges", unit: "short", queries: line("max(fiscalhub_fenced_ranges)", "ranges")},
		}},
	}}
}

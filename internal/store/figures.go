package store

import (
	"context"
	"strconv"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/cause"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

// JobFigure is how many jobs of a queue are in a stage and a state.
type JobFigure struct {
	Queue   Queue
	Stage   string
	State   string // waiting, running, suspended or held
	Jobs    int64
	Created time.Time // of the oldest document
	DueAt   time.Time // of the first job; zero for suspended ones
}

// JobFigures counts the jobs of an environment. Of each queue it counts the first jobs
// that are not suspended and the first suspended ones, at most most of each. So the cost
// does not grow with the backlog.
func (r reader) JobFigures(ctx context.Context, env fiscal.Environment, now time.Time, most int) (all []JobFigure, err error) {
	for _, queue := range Queues() {
		for _, s := range []span{{0, suspendedFrom - 1}, suspendedSpan()} {
			some, err := r.jobFigures(ctx, env, queue, s, now, most)
			if err != nil {
				return nil, err
			}
			all = append(all, some...)
		}
	}
	return all, nil
}

func (r reader) jobFigures(ctx context.Context, env fiscal.Environment, queue Queue, s span, now time.Time, most int) ([]JobFigure, error) {
	// The limit is part of the statement, as in readFront.
	return collect(r.rows(ctx, "count jobs", `
		SELECT stage, running, held, count(*), min(created_at), min(run_at) FROM (
			SELECT stage, created_at, run_at, CASE WHEN lease_until > $5 AND lease_until <= $6 THEN 1 ELSE 0 END AS running,
				CASE WHEN last_error LIKE $7 THEN 1 ELSE 0 END AS held FROM jobs
			WHERE environment = $1 AND queue = $2 AND run_at >= $3 AND run_at <= $4
			ORDER BY run_at, document_id LIMIT `+strconv.Itoa(most)+`) AS front
		GROUP BY stage, running, held ORDER BY stage, running, held`,
		env, queue, s.first, s.last, micros(now), micros(now.Add(longestLease)), cause.HeldPattern), func(f *JobFigure) []any {
		f.Queue, f.State = queue, "waiting"
		var running, held bool
		return []any{&f.Stage, &running, &held, &f.Jobs, instant(&f.Created), into(func(due int64) {
			switch {
			case held: // also for the moment in which a worker looks whether that has changed
				f.State = "held"
			case running:
				f.State = "running"
			case due >= suspendedFrom:
				f.State = "suspended"
			}
			if due < suspendedFrom {
				f.DueAt = fromMicros(due)
			}
		})}
	})
}

// DeliveryFigure is how many deliveries to endpoints with a status are not done.
type DeliveryFigure struct {
	Status     string // enabled, failing or disabled
	Deliveries int64
	Created    time.Time // of the oldest one
}

// endpointStatus is the status of an endpoint as figures show it.
const endpointStatus = `CASE WHEN e.status = 'disabled' THEN 'disabled' WHEN e.failures > 0 THEN 'failing' ELSE 'enabled' END`

// DeliveryFigures counts the pending deliveries of an environment. It looks at most at so
// many pending deliveries of the database, so the cost does not grow with the backlog.
func (r reader) DeliveryFigures(ctx context.Context, env fiscal.Environment, most int) ([]DeliveryFigure, error) {
	// An index with pending deliveries alone has this order.
	return collect(r.rows(ctx, "count deliveries", `
		SELECT `+endpointStatus+` AS shown, count(*), min(d.created_at) FROM (
			SELECT endpoint_id, created_at FROM webhook_deliveries WHERE state = 'pending'
			ORDER BY endpoint_id, run_at, revision, event_id LIMIT `+strconv.Itoa(most)+`) AS d
		JOIN endpoints e ON e.id = d.endpoint_id
		WHERE e.environment = $1 AND e.status <> 'deleted' GROUP BY shown`, env), func(f *DeliveryFigure) []any { return []any{&f.Status, &f.Deliveries, instant(&f.Created)} })
}

// EndpointFigures counts the endpoints of an environment by status: enabled, failing or
// disabled.
func (r reader) EndpointFigures(ctx context.Context, env fiscal.Environment) (map[string]int64, error) {
	all := map[string]int64{}
	_, err := collect(r.rows(ctx, "count endpoints", `
		SELECT `+endpointStatus+` AS shown, count(*) FROM endpoints e
		WHERE e.environment = $1 AND e.status <> 'deleted' GROUP BY shown`, env), func(status *string) []any {
		return []any{status, into(func(n int64) { all[*status] = n })}
	})
	return all, err
}

// CertificateEnds returns for each taxpayer of an environment when the certificate ends
// that lasts longest. Revoked certificates do not count; a taxpayer that has only such
// ones is not in the list.
func (r reader) CertificateEnds(ctx context.Context, env fiscal.Environment) ([]time.Time, error) {
	return collect(r.rows(ctx, "read the ends of certificates", `
		SELECT max(not_after) FROM certificates WHERE environment = $1 AND revoked_at IS NULL GROUP BY taxpayer_id`, env), func(end *time.Time) []any { return []any{instant(end)} })
}

// NumberFigure is how many numbers of a type a taxpayer has left.
type NumberFigure struct {
	Type   fiscal.Type
	Left   int64 // in ranges that are neither fenced nor expired
	Fenced int64 // ranges
}

// NumberFigures returns the numbers that the taxpayers of an environment have left on a
// day, one entry for each taxpayer and type.
func (r reader) NumberFigures(ctx context.Context, env fiscal.Environment, day fiscal.Date) ([]NumberFigure, error) {
	return collect(r.rows(ctx, "count numbers", `
		SELECT ecf_type,
			cast(sum(CASE WHEN fenced_at IS NULL AND (expires = '' OR expires >= $2) THEN last_number - next_number + 1 ELSE 0 END) AS bigint),
			cast(sum(CASE WHEN fenced_at IS NULL THEN 0 ELSE 1 END) AS bigint)
		FROM number_ranges WHERE environment = $1 GROUP BY taxpayer_id, ecf_type`, env, day.String()), func(f *NumberFigure) []any { return []any{&f.Type, &f.Left, &f.Fenced} })
}

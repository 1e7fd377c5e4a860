package store

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

// LoggedRequest is an API request that was answered. It has no body, no query string and
// no secret.
type LoggedRequest struct {
	Scope
	ID         string // empty before it is stored
	RequestID  string
	At         time.Time
	Method     string
	Route      string // pattern of the path
	Path       string
	Status     int
	Code       string          // error code; empty for a success
	Details    []RequestDetail // of an error
	Credential string          // prefix
	Took       time.Duration
	Replayed   bool
}

// RequestDetail is a problem of a request: its code and the field that has it.
type RequestDetail struct{ Code, Field string }

// maxDetails is how many details of a request are stored.
const maxDetails = 20

// detailsText is the stored form of details: code and field of each on a line.
func detailsText(details []RequestDetail) string {
	var b strings.Builder
	for i, d := range details {
		if i == maxDetails {
			break
		}
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(d.Code + " " + fieldText(d.Field))
	}
	return b.String()
}

// maxField is how many bytes of the name of a field are stored.
const maxField = 120

// fieldText returns the name of a field without control characters. The name of an
// unknown field is a text of the client.
func fieldText(field string) string {
	field = strings.Map(func(c rune) rune {
		if c < ' ' || c == 0x7f {
			return -1
		}
		return c
	}, strings.ToValidUTF8(field, ""))
	if len(field) > maxField {
		field = strings.ToValidUTF8(field[:maxField], "")
	}
	return field
}

func readDetails(text string) (details []RequestDetail) {
	if text == "" {
		return nil
	}
	for line := range strings.SplitSeq(text, "\n") {
		code, field, _ := strings.Cut(line, " ")
		details = append(details, RequestDetail{code, field})
	}
	return details
}

// LogRequests stores requests in one transaction.
func (s *Store) LogRequests(ctx context.Context, requests []LoggedRequest) error {
	const columns = 14
	values := make([]any, 0, columns*len(requests))
	for _, q := range requests {
		values = append(values, NewIDAt(q.At), string(q.Environment), q.TaxpayerID, q.RequestID, micros(q.At), q.Method, q.Route, q.Path,
			q.Status, q.Code, detailsText(q.Details), q.Credential, q.Took.Microseconds(), oneIf(q.Replayed))
	}
	return s.Update(ctx, func(tx *Tx) error {
		return inChunks(values, columns, func(some []any, list string) error {
			return tx.exec(ctx, "log requests", `
				INSERT INTO request_log (`+requestColumns+`) VALUES `+list, some...)
		})
	})
}

const requestColumns = `id, environment, taxpayer_id, request_id, at, method, route, path, status, code, details, credential, took_us, replayed`

func (q *LoggedRequest) columns() []any {
	return []any{
		&q.ID, &q.Environment, &q.TaxpayerID, &q.RequestID, instant(&q.At), &q.Method, &q.Route, &q.Path, &q.Status, &q.Code,
		via(&q.Details, readDetails), &q.Credential, elapsed(&q.Took), &q.Replayed,
	}
}

// RequestFilter selects requests of the log. Empty fields do not filter.
type RequestFilter struct {
	Errors     bool // only requests that were refused or failed
	Code       string
	Route      string
	Method     string
	Status     int // a status, or 2, 4 or 5 for a class of statuses
	Credential string
	From, To   time.Time // To is not included
	Before     string    // only requests older than the one with this id
	Limit      int

	environment fiscal.Environment // empty: the statement has the condition
}

// ids returns the span of ids in which the requests of a filter are.
func (f RequestFilter) ids() (from, before string) {
	if !f.From.IsZero() {
		from = FirstIDAt(f.From)
	}
	before = lastID
	if !f.To.IsZero() {
		before = FirstIDAt(f.To)
	}
	if f.Before != "" {
		before = min(before, f.Before)
	}
	return from, before
}

// lastID is above every id.
const lastID = "g"

// Matches reports whether a request passes the filter, apart from its time.
func (f RequestFilter) Matches(q LoggedRequest) bool {
	return (f.environment == "" || q.Environment == f.environment) && (!f.Errors || q.Code != "") && (f.Code == "" || q.Code == f.Code) && (f.Route == "" || q.Route == f.Route) &&
		(f.Method == "" || q.Method == f.Method) && (f.Status == 0 || q.Status == f.Status || q.Status/100 == f.Status) &&
		(f.Credential == "" || q.Credential == f.Credential)
}

// Requests lists the requests of a taxpayer, the newest first. It looks at a bounded
// number of rows: next is where the list continues, or empty at its end.
func (r reader) Requests(ctx context.Context, scope Scope, f RequestFilter) (found []LoggedRequest, next string, err error) {
	where := ``
	if f.Errors || f.Code != "" {
		where = ` AND code <> ''`
	}
	return f.page(func(from, before string, limit int) ([]LoggedRequest, error) {
		return collect(r.rows(ctx, "list requests", `
			SELECT `+requestColumns+` FROM request_log
			WHERE environment = $1 AND taxpayer_id = $2 AND id >= $3 AND id < $4`+where+` ORDER BY id DESC LIMIT `+strconv.Itoa(limit),
			scope.Environment, scope.TaxpayerID, from, before), (*LoggedRequest).columns)
	})
}

// AllRequests is Requests for all taxpayers of an environment, and for requests without
// a known taxpayer. Only operators and auditors use it.
func (r reader) AllRequests(ctx context.Context, env fiscal.Environment, f RequestFilter) (found []LoggedRequest, next string, err error) {
	// Without a condition on the environment, every engine uses the index of the ids.
	f.environment = env
	return f.page(func(from, before string, limit int) ([]LoggedRequest, error) {
		return collect(r.rows(ctx, "list requests", `
			SELECT `+requestColumns+` FROM request_log WHERE id >= $1 AND id < $2 ORDER BY id DESC LIMIT `+strconv.Itoa(limit), from, before), (*LoggedRequest).columns)
	})
}

// page reads parts of a list until a page is full, the list ends, or maxLooked rows were
// read.
func (f RequestFilter) page(read func(from, before string, limit int) ([]LoggedRequest, error)) (found []LoggedRequest, next string, err error) {
	from, before := f.ids()
	return filterList(f.Limit, before,
		func(before string, limit int) ([]LoggedRequest, error) { return read(from, before, limit) },
		func(q LoggedRequest) string { return q.ID }, f.Matches)
}

// RequestByID reads the requests with a request id, the newest first. A client that
// chooses its own ids may use one twice.
func (r reader) RequestByID(ctx context.Context, within Within, requestID string) ([]LoggedRequest, error) {
	all, err := collect(r.rows(ctx, "find request", `
		SELECT `+requestColumns+` FROM request_log WHERE request_id = $1 ORDER BY id DESC LIMIT 100`, requestID), (*LoggedRequest).columns)
	return slices.DeleteFunc(all, func(q LoggedRequest) bool {
		return q.Environment != within.Environment || !within.Allows(q.TaxpayerID)
	}), err
}

// RequestErrors is how many requests of a route ended with an error code.
type RequestErrors struct {
	Code     string
	Route    string
	Requests int64
	Last     time.Time // the newest of them
}

// mostErrors is how many errors RequestErrors counts.
const mostErrors = 20_000

// RequestErrors counts the errors of a taxpayer since a moment by code and route, the
// most frequent first. It counts the newest ones, at most a fixed number.
func (r reader) RequestErrors(ctx context.Context, scope Scope, since time.Time) ([]RequestErrors, error) {
	return collect(r.rows(ctx, "count errors of requests", `
		SELECT code, route, count(*), max(at) FROM (
			SELECT code, route, at FROM request_log
			WHERE environment = $1 AND taxpayer_id = $2 AND code <> '' AND id >= $3 ORDER BY id DESC LIMIT `+strconv.Itoa(mostErrors)+`) AS errors
		GROUP BY code, route ORDER BY 3 DESC, code, route`, scope.Environment, scope.TaxpayerID, FirstIDAt(since)), (*RequestErrors).columns)
}

func (e *RequestErrors) columns() []any {
	return []any{&e.Code, &e.Route, &e.Requests, instant(&e.Last)}
}

// mostLooked is at how many requests AllRequestErrors looks.
const mostLooked = 5000

// AllRequestErrors is RequestErrors for all taxpayers of an environment, among the newest
// requests. Only operators and auditors use it.
func (r reader) AllRequestErrors(ctx context.Context, env fiscal.Environment, since time.Time) ([]RequestErrors, error) {
	// As in AllRequests, the inner statement has no condition on the environment.
	return collect(r.rows(ctx, "count errors of requests", `
		SELECT code, route, count(*), max(at) FROM (
			SELECT environment, code, route, at FROM request_log WHERE id >= $2 ORDER BY id DESC LIMIT `+strconv.Itoa(mostLooked)+`) AS newest
		WHERE environment = $1 AND code <> '' GROUP BY code, route ORDER BY 3 DESC, code, route`, env, FirstIDAt(since)), (*RequestErrors).columns)
}

// TrimRequests deletes the oldest requests of a taxpayer beyond the newest keep ones, in
// transactions of a bounded size.
func (s *Store) TrimRequests(ctx context.Context, scope Scope, keep int) (deleted int64, err error) {
	first, err := one(s.rows(ctx, "trim requests", `
		SELECT id FROM request_log WHERE environment = $1 AND taxpayer_id = $2 ORDER BY id DESC LIMIT 1 OFFSET `+strconv.Itoa(keep),
		scope.Environment, scope.TaxpayerID), only[string])
	if err != nil {
		return 0, ifFound(err)
	}
	for {
		n, err := s.run(ctx, "trim requests", do(`
			DELETE FROM request_log WHERE environment = $1 AND taxpayer_id = $2 AND id IN (
				SELECT id FROM request_log WHERE environment = $1 AND taxpayer_id = $2 AND id <= $3 ORDER BY id LIMIT `+strconv.Itoa(purgeBatch)+`)`,
			string(scope.Environment), scope.TaxpayerID, first))
		deleted += n
		if err != nil || n < purgeBatch {
			return deleted, err
		}
	}
}

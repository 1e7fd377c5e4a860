package store

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

// ExportState is the state of an export.
type ExportState string

// The states of an export.
const (
	ExportWaiting ExportState = "waiting"
	ExportRunning ExportState = "running"
	ExportDone    ExportState = "done"
	ExportFailed  ExportState = "failed"
)

// ExportKept is how long an export and its file are kept.
const ExportKept = 7 * 24 * time.Hour

// Export is a file with the documents of a taxpayer, or the request to make it.
type Export struct {
	Scope
	ID        string
	From, To  fiscal.Date // days of the country, both included
	Include   []string    // what the file contains, for example xml, pdf, csv
	State     ExportState
	Done      int64 // documents that are in the file
	Total     int64 // documents that will be in it; 0: not counted yet
	File      string
	Size      int64  // of the file in bytes; 0: not ready, or on the node of an earlier release
	Problem   string // why a failed export failed
	CreatedBy string
	CreatedAt time.Time
	UpdatedAt time.Time
	ExpiresAt time.Time
}

const exportColumns = `environment, taxpayer_id, id, from_day, to_day, include, state, done, total, file, size, problem,
	created_by, created_at, updated_at, expires_at`

// CreateExport stores the request for an export.
func (tx *Tx) CreateExport(ctx context.Context, e Export) error {
	return tx.exec(ctx, "create export", `
		INSERT INTO exports (`+exportColumns+`, holder, held_until)
		VALUES ($1, $2, $3, $4, $5, $6, 'waiting', 0, 0, '', 0, '', $7, $8, $8, $9, '', 0)`,
		e.Environment, e.TaxpayerID, e.ID, e.From.String(), e.To.String(), strings.Join(e.Include, ","), e.CreatedBy, micros(e.CreatedAt), micros(e.ExpiresAt))
}

func (e *Export) columns() []any {
	return []any{
		&e.Environment, &e.TaxpayerID, &e.ID, parse(&e.From, fiscal.ParseDate), parse(&e.To, fiscal.ParseDate), via(&e.Include, readInclude),
		&e.State, &e.Done, &e.Total, &e.File, &e.Size, &e.Problem, &e.CreatedBy, instant(&e.CreatedAt), instant(&e.UpdatedAt), instant(&e.ExpiresAt),
	}
}

func readInclude(text string) []string {
	return strings.FieldsFunc(text, func(c rune) bool { return c == ',' })
}

// Exports lists the exports of a taxpayer, the newest first.
func (r reader) Exports(ctx context.Context, scope Scope) ([]Export, error) {
	return collect(r.rows(ctx, "list exports", `
		SELECT `+exportColumns+` FROM exports WHERE environment = $1 AND taxpayer_id = $2 ORDER BY id DESC LIMIT 100`,
		scope.Environment, scope.TaxpayerID), (*Export).columns)
}

// Export reads an export. The error is ErrNotFound when there is none.
func (r reader) Export(ctx context.Context, scope Scope, id string) (Export, error) {
	return one(r.rows(ctx, "read export", `
		SELECT `+exportColumns+` FROM exports WHERE environment = $1 AND taxpayer_id = $2 AND id = $3`,
		scope.Environment, scope.TaxpayerID, id), (*Export).columns)
}

// RecentExports lists exports of several taxpayers, the newest first.
func (r reader) RecentExports(ctx context.Context, within Within, limit int) ([]Export, error) {
	condition, args := within.and("taxpayer_id", 2)
	return collect(r.rows(ctx, "list recent exports", `
		SELECT `+exportColumns+` FROM exports WHERE environment = $1`+condition+` ORDER BY id DESC LIMIT `+strconv.Itoa(limit),
		append([]any{within.Environment}, args...)...), (*Export).columns)
}

// ExportWithin reads an export of one of several taxpayers. The error is ErrNotFound when
// there is none.
func (r reader) ExportWithin(ctx context.Context, within Within, id string) (Export, error) {
	condition, args := within.and("taxpayer_id", 3)
	return one(r.rows(ctx, "read export", `
		SELECT `+exportColumns+` FROM exports WHERE environment = $1 AND id = $2`+condition, append([]any{within.Environment, id}, args...)...), (*Export).columns)
}

// ClaimExport gives the oldest open export of an environment to a holder until a moment.
// An export whose holder has died is open again after that moment. The error is
// ErrNotFound when there is none.
func (s *Store) ClaimExport(ctx context.Context, env fiscal.Environment, holder string, now, until time.Time) (e Export, err error) {
	err = s.Update(ctx, func(tx *Tx) error {
		e, err = one(tx.rows(ctx, "claim export", `
			SELECT `+exportColumns+` FROM exports
			WHERE environment = $1 AND state IN ('waiting', 'running') AND (held_until <= $2 OR held_until > $3) ORDER BY state DESC, id LIMIT 1`,
			env, micros(now), micros(now.Add(longestLease))), (*Export).columns)
		if err != nil {
			return err
		}
		// Another node may have claimed it since it was read.
		return tx.writeOne(ctx, "claim export", ErrNotFound, do(`
			UPDATE exports SET state = 'running', holder = $4, held_until = $5
			WHERE environment = $1 AND taxpayer_id = $2 AND id = $3 AND state IN ('waiting', 'running') AND (held_until <= $6 OR held_until > $7)`,
			string(e.Environment), e.TaxpayerID, e.ID, holder, micros(until), micros(now), micros(now.Add(longestLease))))
	})
	e.State = ExportRunning
	return e, err
}

// SaveExport stores the progress or the end of an export, and extends the claim of its
// holder. The error is ErrLeaseLost when the holder's claim is over.
func (tx *Tx) SaveExport(ctx context.Context, e Export, holder string, now, until time.Time) error {
	return tx.writeOne(ctx, "save export", ErrLeaseLost, do(`
		UPDATE exports SET state = $5, done = $6, total = $7, file = $8, size = $9, problem = $10, held_until = $11, updated_at = $12
		WHERE environment = $1 AND taxpayer_id = $2 AND id = $3 AND holder = $4`,
		string(e.Environment), e.TaxpayerID, e.ID, holder, string(e.State), e.Done, e.Total, e.File, e.Size, e.Problem, micros(until), micros(now)))
}

// ExpiredExports lists the exports of all environments whose time is over. The caller
// deletes their files, and then the rows with DeleteExport.
func (r reader) ExpiredExports(ctx context.Context, now time.Time) ([]Export, error) {
	return collect(r.rows(ctx, "list expired exports", `SELECT `+exportColumns+` FROM exports WHERE expires_at <= $1 ORDER BY expires_at LIMIT 100`, micros(now)), (*Export).columns)
}

// DeleteExport deletes the row of an export. Its chunks are then to be deleted with
// DeleteExportChunks.
func (tx *Tx) DeleteExport(ctx context.Context, scope Scope, id string) error {
	return tx.exec(ctx, "delete export", `DELETE FROM exports WHERE environment = $1 AND taxpayer_id = $2 AND id = $3`, scope.Environment, scope.TaxpayerID, id)
}

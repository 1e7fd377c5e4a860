package store

import (
	"context"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

// An IssueSpan selects invoices by their date of issue.
type IssueSpan struct {
	From, To fiscal.Date // the first and the last date
	After    string      // only invoices with a later id
	Until    string      // only invoices with this id or an earlier one
	Limit    int
}

// clockMargin is how much earlier than the end of its date of issue an invoice may have
// been created: the day itself, and two days for clocks that differ.
const clockMargin = 72 * time.Hour

// The condition on the id leaves out older invoices without reading them, see firstID.
const issueSpan = `environment = $1 AND taxpayer_id = $2 AND id > $3 AND id <= $4 AND issue_date >= $5 AND issue_date <= $6`

func (f IssueSpan) args(scope Scope) []any {
	return []any{scope.Environment, scope.TaxpayerID, max(f.After, f.firstID(scope.Environment)), f.Until, f.From.String(), f.To.String()}
}

// firstID returns an id below the ids of all invoices of the span. A live
// invoice is not created before its date of issue; the sandbox accepts every date.
func (f IssueSpan) firstID(env fiscal.Environment) string {
	if env == fiscal.Sandbox {
		return ""
	}
	return FirstIDAt(f.From.End().Add(-clockMargin))
}

// CountIssuedBetween counts the invoices of a span.
func (r reader) CountIssuedBetween(ctx context.Context, scope Scope, f IssueSpan) (int64, error) {
	return one(r.rows(ctx, "count invoices of a span", `SELECT count(*) FROM documents WHERE `+issueSpan, f.args(scope)...), only[int64])
}

// IssuedBetween reads invoices of a span, the oldest first.
func (r reader) IssuedBetween(ctx context.Context, scope Scope, f IssueSpan) ([]Invoice, error) {
	return collect(r.rows(ctx, "read invoices of a span", `
		SELECT `+invoiceColumns+` FROM documents WHERE `+issueSpan+` ORDER BY id LIMIT $7`, append(f.args(scope), f.Limit)...), invoiceOf(scope))
}

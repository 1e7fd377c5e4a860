package store

import (
	"context"
	"errors"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

// ErrNumberUsed says that a number belongs to another document.
var ErrNumberUsed = errors.New("store: the number belongs to another document")

// NumberState is what became of a number.
type NumberState string

// The states of a number. One that the authority lets be used again is marked,
// and never used again by itself.
const (
	NumberIssued   NumberState = "issued"
	NumberUsed     NumberState = "used"
	NumberReusable NumberState = "reusable"
)

// Issued is a number taken and the document signed under it: the ledger's row.
// Its bytes never change.
type Issued struct {
	Scope
	RNC, ENCF     string
	InvoiceID     string // only told, to find the invoice: the document is the key
	DocumentID    string
	NumberRangeID string
	Certificate   string // SHA-256 of the certificate it is signed with, in hexadecimal
	State         NumberState
	SecurityCode  string
	BuyerRNC      string // empty when the document names none
	SignedAt      time.Time
	CreatedAt     time.Time
	XMLDigest     []byte // SHA-256 of XML
	SentDigest    []byte // SHA-256 of what the authority gets
	XML           []byte
	Summary       []byte // what the authority gets of a small consumer invoice; nil otherwise
	Summarized    bool   // the authority gets the summary; also where the bytes were not read
}

// Sent is what the authority gets: the summary of a small consumer invoice, and
// the document itself of every other.
func (i Issued) Sent() []byte {
	if i.Summary != nil {
		return i.Summary
	}
	return i.XML
}

const issuedHead = `environment, rnc, encf, taxpayer_id, document_id, sequence_id, certificate, number_state, security_code, buyer_rnc,
	signed_at, created_at, xml_sha256, sent_sha256`

// Issue stores a signed document under its number, and gives its invoice the
// number. It is committed with the number that was taken.
func (tx *Tx) Issue(ctx context.Context, i Issued) error {
	row, number := issue(i)
	n, err := row.run(ctx, tx.q)
	if err == nil && n == 0 {
		err = ErrNumberUsed
	}
	if err != nil {
		return tx.d.wrap("issue", err)
	}
	if n, err = number.run(ctx, tx.q); err == nil && n == 0 {
		err = orNotFound(nil)
	}
	return tx.d.wrap("issue", err)
}

// issue is the ledger's row, and the number of the invoice.
func issue(i Issued) (row, number statement) {
	var summary any // not a nil slice, which some drivers take for empty bytes
	if i.Summary != nil {
		summary = i.Summary
	}
	return statement{`
		INSERT INTO issued (` + issuedHead + `, xml, summary)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)
		ON CONFLICT DO NOTHING`, []any{
			string(i.Environment), i.RNC, i.ENCF, i.TaxpayerID, i.DocumentID, i.NumberRangeID, i.Certificate, string(NumberIssued), i.SecurityCode, i.BuyerRNC,
			micros(i.SignedAt), micros(i.CreatedAt), i.XMLDigest, i.SentDigest, i.XML, summary,
		}}, statement{`
		UPDATE invoices SET encf = $5
		WHERE environment = $1 AND taxpayer_id = $2 AND id = $3 AND document_id = $4 AND encf IS NULL`, []any{
			string(i.Environment), i.TaxpayerID, i.InvoiceID, i.DocumentID, i.ENCF,
		}}
}

// An Issuance is a signed document and the job that it belongs to.
type Issuance struct {
	Issued
	Job Job
}

// NotIssuedError says which of several documents could not be issued, and why. None
// was.
type NotIssuedError struct {
	Index int
	Err   error
}

func (e *NotIssuedError) Error() string { return e.Err.Error() }

// Unwrap returns why.
func (e *NotIssuedError) Unwrap() error { return e.Err }

// IssueAll takes the next numbers of a sequence and stores the documents that
// were signed under them, in their order, in one transaction: all of them or
// none. Each job goes on to the stage, held until the moment. The error is
// ErrNumbersMoved, or NotIssued with ErrLeaseLost or ErrNumberUsed.
func (s *Store) IssueAll(ctx context.Context, sequence NumberRange, all []Issuance, stage string, until time.Time) error {
	const each = 3
	statements := make([]statement, 1, 1+each*len(all))
	statements[0] = takeNumbers(sequence, int64(len(all)))
	for _, one := range all {
		row, number := issue(one.Issued)
		statements = append(statements, carryJob(one.Job, stage, until), row, number)
	}
	err := s.batch(ctx, statements, func(rows []int64) error {
		if rows[0] == 0 {
			return ErrNumbersTaken
		}
		for i := range all {
			changed := rows[1+each*i : 1+each*(i+1)]
			switch {
			case changed[0] == 0:
				return &NotIssuedError{i, ErrLeaseLost}
			case changed[1] == 0, changed[2] == 0:
				return &NotIssuedError{i, ErrNumberUsed}
			}
		}
		return nil
	})
	return s.d.wrap("issue", err)
}

// IssuedDocument reads the ledger's row of a document, with its bytes.
func (r reader) IssuedDocument(ctx context.Context, scope Scope, documentID string) (Issued, error) {
	i, err := scanIssued(r.q.QueryRowContext(ctx, `
		SELECT `+issuedHead+`, xml, summary FROM issued
		WHERE environment = $1 AND taxpayer_id = $2 AND document_id = $3`,
		scope.Environment, scope.TaxpayerID, documentID))
	return i, r.d.wrap("read issued document", err)
}

func scanIssued(r row) (Issued, error) {
	var i Issued
	var signed, created int64
	err := r.Scan(
		&i.Environment, &i.RNC, &i.ENCF, &i.TaxpayerID, &i.DocumentID, &i.NumberRangeID, &i.Certificate, &i.State, &i.SecurityCode, &i.BuyerRNC,
		&signed, &created, &i.XMLDigest, &i.SentDigest, &i.XML, &i.Summary)
	i.SignedAt, i.CreatedAt, i.Summarized = fromMicros(signed), fromMicros(created), i.Summary != nil
	return i, err
}

// IssuedUnder reads the ledger's row of a number of an environment, whoever's it
// is. It is for what third parties say about a number.
func (r reader) IssuedUnder(ctx context.Context, env fiscal.Environment, rnc, encf string) (Issued, error) {
	i, err := scanIssued(r.q.QueryRowContext(ctx, `
		SELECT `+issuedHead+`, xml, summary FROM issued
		WHERE environment = $1 AND rnc = $2 AND encf = $3 AND taxpayer_id <> ''`, env, rnc, encf))
	return i, r.d.wrap("read issued document", err)
}

// SettleNumber says what became of a document's number.
func (b *Batch) SettleNumber(i Issued, state NumberState) *Batch {
	return b.add(statement{`
		UPDATE issued SET number_state = $5
		WHERE environment = $1 AND rnc = $2 AND encf = $3 AND taxpayer_id = $4`, []any{
		string(i.Environment), i.RNC, i.ENCF, i.TaxpayerID, string(state),
	}}, nil)
}

// HighestSent is the highest number from one to another of an RNC that was sent,
// and empty when none was.
func (r reader) HighestSent(ctx context.Context, env fiscal.Environment, rnc, from, to string) (string, error) {
	var encf string
	// The ledger is walked downwards by its key, and ends with the first hit.
	err := r.q.QueryRowContext(ctx, `
		SELECT i.encf FROM issued i
		WHERE i.environment = $1 AND i.rnc = $2 AND i.encf >= $3 AND i.encf <= $4
			AND EXISTS (SELECT 1 FROM attempts a WHERE a.document_id = i.document_id AND a.kind = 'submit')
		ORDER BY i.encf DESC LIMIT 1`, env, rnc, from, to).Scan(&encf)
	_, err = r.some("look for sent numbers", err)
	return encf, err
}

package store

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

// ErrNumberUsed means that the number belongs to another document.
var ErrNumberUsed = errors.New("store: the number belongs to another document")

// NumberState is the state of a number.
type NumberState string

// The states of a number. The tax authority allows another use of a reusable number;
// the service never uses it again.
const (
	NumberIssued   NumberState = "issued"
	NumberUsed     NumberState = "used"
	NumberReusable NumberState = "reusable"
)

// Issued is a number and the document that was signed with it. Its bytes never change.
type Issued struct {
	Scope
	RNC, ENCF     string
	DocumentID    string
	NumberRangeID string
	Certificate   string // SHA-256 of the certificate of the signature, in hexadecimal
	State         NumberState
	SecurityCode  string
	BuyerRNC      string // empty: the document names no buyer
	SignedAt      time.Time
	CreatedAt     time.Time
	XMLDigest     []byte // SHA-256 of XML
	SentDigest    []byte // SHA-256 of Sent
	XML           []byte
	Summary       []byte // RFCE of a small consumer invoice; nil for other documents
	Summarized    bool   // the document has a Summary; also set when the bytes were not read
}

// Sent returns the bytes for the tax authority: the summary of a small consumer
// invoice, and the whole document otherwise.
func (i Issued) Sent() []byte {
	if i.Summary != nil {
		return i.Summary
	}
	return i.XML
}

const issuedHead = `environment, rnc, encf, taxpayer_id, document_id, range_id, certificate, number_state, security_code, buyer_rnc,
	signed_at, created_at, xml_sha256, sent_sha256`

// Issue stores a signed document with its number, and shows the number. Only tests use it:
// IssueAll issues documents together with their numbers and jobs. The error is
// ErrNumberUsed when another document has the number, and ErrNotFound when there is no such
// invoice without a number.
func (tx *Tx) Issue(ctx context.Context, i Issued) error {
	if err := tx.writeOne(ctx, "issue", ErrNumberUsed, tx.d.issue(i)); err != nil {
		return err
	}
	return tx.writeOne(ctx, "issue", ErrNotFound, showNumber(i))
}

// issue returns the statement that stores the document.
func (d *dialect) issue(i Issued) statement {
	return do(`
		INSERT INTO issued_documents (`+issuedHead+`, xml, summary)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)
		ON CONFLICT DO NOTHING`,
		string(i.Environment), i.RNC, i.ENCF, i.TaxpayerID, i.DocumentID, i.NumberRangeID, i.Certificate, string(NumberIssued), i.SecurityCode, i.BuyerRNC,
		micros(i.SignedAt), micros(i.CreatedAt), i.XMLDigest, i.SentDigest, d.compressed(i.XML), optionalBytes(d.compressed(i.Summary)))
}

// ShowNumber sets the number of the document's invoice: from its commit on, integrators,
// people and buyers can see the number. A copy of the database from before may have lost
// it, so the witness must know it first. A number that is shown already stays.
func (b *Batch) ShowNumber(i Issued) *Batch { return b.add(showNumber(i), nil) }

func showNumber(i Issued) statement {
	return do(`
		UPDATE documents SET encf = $4
		WHERE environment = $1 AND taxpayer_id = $2 AND document_id = $3 AND encf IS NULL`,
		string(i.Environment), i.TaxpayerID, i.DocumentID, i.ENCF)
}

// An Issuance is a signed document and its job.
type Issuance struct {
	Issued
	Job Job
}

// NotIssuedError says which document of IssueAll could not be issued, and why. None of
// the documents was issued.
type NotIssuedError struct {
	Index int
	Err   error
}

func (e *NotIssuedError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *NotIssuedError) Unwrap() error { return e.Err }

// IssueAll takes the next numbers of a range and stores the documents that were signed
// with them, in that order, in one transaction. The numbers are not shown yet: see
// ShowNumber. Each job moves to the stage, and its lease lasts until the given moment. The
// error is ErrNumbersTaken, or a NotIssuedError with ErrLeaseLost or ErrNumberUsed; then
// nothing is stored.
//
// The range must have been read from the database on the given timeline. When the
// transaction runs on another one, the error is ErrNumbersTaken: the database failed
// over since, and may lack numbers that were sent. An empty timeline is not compared.
func (s *Store) IssueAll(ctx context.Context, timeline string, numbers NumberRange, all []Issuance, stage string, until time.Time) error {
	const each = 2
	statements := make([]statement, 1, 1+each*len(all))
	statements[0] = takeNumbers(numbers, int64(len(all)))
	if timeline != "" && s.d.TimelineText != "" {
		args := append(statements[0].Args, timeline)
		statements[0] = do(statements[0].Text+` AND `+s.d.TimelineText+` = $`+strconv.Itoa(len(args)), args...)
	}
	for _, one := range all {
		statements = append(statements, numberJob(one.Job, stage, one.ENCF, until), s.d.issue(one.Issued))
	}
	err := s.Batch(ctx, statements, func(rows []int64) error {
		if rows[0] == 0 {
			return ErrNumbersTaken
		}
		for i := range all {
			changed := rows[1+each*i : 1+each*(i+1)]
			switch {
			case changed[0] == 0:
				return &NotIssuedError{i, ErrLeaseLost}
			case changed[1] == 0:
				return &NotIssuedError{i, ErrNumberUsed}
			}
		}
		return nil
	})
	return s.d.wrap("issue", err)
}

// IssuedDocument reads the number and the signed bytes of a document. The error is
// ErrNotFound when the document has no number.
func (r reader) IssuedDocument(ctx context.Context, scope Scope, documentID string) (Issued, error) {
	return one(r.rows(ctx, "read issued document", `
		SELECT `+issuedHead+`, xml, summary FROM issued_documents
		WHERE environment = $1 AND taxpayer_id = $2 AND document_id = $3`,
		scope.Environment, scope.TaxpayerID, documentID), (*Issued).columns)
}

func (i *Issued) columns() []any {
	summary := into(func(text storedText) { i.Summary, i.Summarized = text, true })
	return []any{
		&i.Environment, &i.RNC, &i.ENCF, &i.TaxpayerID, &i.DocumentID, &i.NumberRangeID, &i.Certificate, &i.State, &i.SecurityCode, &i.BuyerRNC,
		instant(&i.SignedAt), instant(&i.CreatedAt), &i.XMLDigest, &i.SentDigest, (*storedText)(&i.XML), summary,
	}
}

// IssuedUnder reads the document with a number of an RNC. It searches all taxpayers, because
// several may have the same RNC. A number that was replaced has none. Requests of third
// parties, which name only the number, use it.
func (r reader) IssuedUnder(ctx context.Context, env fiscal.Environment, rnc, encf string) (Issued, error) {
	return one(r.rows(ctx, "read issued document", `
		SELECT `+issuedHead+`, xml, summary FROM issued_documents
		WHERE environment = $1 AND rnc = $2 AND encf = $3 AND former_document_id IS NULL`, env, rnc, encf), (*Issued).columns)
}

// SettleNumber sets the state of a document's number.
func (b *Batch) SettleNumber(i Issued, state NumberState) *Batch {
	return b.add(do(`
		UPDATE issued_documents SET number_state = $5
		WHERE environment = $1 AND rnc = $2 AND encf = $3 AND taxpayer_id = $4`,
		string(i.Environment), i.RNC, i.ENCF, i.TaxpayerID, string(state)), nil)
}

// HasIssued reports whether a document of the environment has a number.
func (r reader) HasIssued(ctx context.Context, env fiscal.Environment) (bool, error) {
	return r.exists(ctx, "find issued documents", `SELECT 1 FROM issued_documents WHERE environment = $1 LIMIT 1`, env)
}

// HighestSent returns the highest number of an RNC between from and to for which there
// is an attempt to send the document to the tax authority, also one that was replaced
// since. It returns an empty string when there is none.
func (r reader) HighestSent(ctx context.Context, env fiscal.Environment, rnc, from, to string) (string, error) {
	// The query reads the primary key downwards and stops at the first match.
	encf, err := one(r.rows(ctx, "find the highest sent number", `
		SELECT i.encf FROM issued_documents i
		WHERE i.environment = $1 AND i.rnc = $2 AND i.encf >= $3 AND i.encf <= $4
			AND (EXISTS (SELECT 1 FROM attempts a WHERE a.document_id = i.document_id AND a.kind = 'submit' AND NOT `+ofReplacedNumber+`)
				OR i.former_document_id IS NOT NULL
					AND EXISTS (SELECT 1 FROM attempts a WHERE a.document_id = i.former_document_id AND a.kind = 'submit' AND a.sha256 = i.sent_sha256))
		ORDER BY i.encf DESC LIMIT 1`, env, rnc, from, to), only[string])
	return encf, ifFound(err)
}

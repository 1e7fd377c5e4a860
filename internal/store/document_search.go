package store

import (
	"context"
	"slices"
	"strconv"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

// FoundDocument is a document in the result of a search.
type FoundDocument struct {
	Invoice
	BuyerName string // empty: the document names no buyer, or is not indexed yet
	BuyerRNC  string
	Indexed   bool // the index has the document
}

// A Candidate is a document that may be a result of a search.
type Candidate struct {
	DocumentID string
	InvoiceID  string // set by the lists of invoices alone
}

func (c *Candidate) columns() []any { return []any{&c.DocumentID} }

func (c *Candidate) listColumns() []any { return []any{&c.DocumentID, &c.InvoiceID} }

const searchDocuments = "search documents" // the operation, in errors

// IDSpan is a part of a list, the newest id first: ids below Before and not below From.
//
// A list of the documents with one value, such as a status, compares the value and the id
// together, and sorts by both. With value = $n and ORDER BY id, PostgreSQL may read all ids
// and drop those with another value, which takes long when few have the value.
type IDSpan struct {
	From, Before string
	Limit        int
}

// args are the arguments of a statement that reads a part of a list.
func (s IDSpan) args(first ...any) []any { return append(first, s.From, s.Before) }

func (s IDSpan) limit() string { return ` LIMIT ` + strconv.Itoa(s.Limit) }

// InvoicesOf lists the documents of a taxpayer by the ids of their invoices. An empty
// status means all.
func (r reader) InvoicesOf(ctx context.Context, scope Scope, status fiscal.Status, part IDSpan) ([]Candidate, error) {
	if status == "" {
		return collect(r.rows(ctx, searchDocuments, `
			SELECT document_id, id FROM documents
			WHERE environment = $1 AND taxpayer_id = $2 AND id >= $3 AND id < $4 ORDER BY id DESC`+part.limit(),
			part.args(scope.Environment, scope.TaxpayerID)...), (*Candidate).listColumns)
	}
	return collect(r.rows(ctx, searchDocuments, `
		SELECT document_id, id FROM documents
		WHERE environment = $1 AND taxpayer_id = $2 AND (status, id) >= ($3, $4) AND (status, id) < ($3, $5)
		ORDER BY status DESC, id DESC`+part.limit(),
		part.args(scope.Environment, scope.TaxpayerID, status)...), (*Candidate).listColumns)
}

// AllDocuments lists documents of all environments and taxpayers.
func (r reader) AllDocuments(ctx context.Context, part IDSpan) ([]Candidate, error) {
	return collect(r.rows(ctx, searchDocuments, `
		SELECT document_id FROM documents WHERE document_id >= $1 AND document_id < $2
		ORDER BY document_id DESC`+part.limit(), part.args()...), (*Candidate).columns)
}

// DocumentsByStatus lists the documents of all taxpayers whose status was this one when
// they were indexed last.
func (r reader) DocumentsByStatus(ctx context.Context, env fiscal.Environment, status fiscal.Status, part IDSpan) ([]Candidate, error) {
	return collect(r.rows(ctx, searchDocuments, `
		SELECT document_id FROM document_index
		WHERE environment = $1 AND (status, document_id) >= ($2, $3) AND (status, document_id) < ($2, $4)
		ORDER BY status DESC, document_id DESC`+part.limit(), part.args(env, status)...), (*Candidate).columns)
}

// DocumentsByTotal lists the documents of all taxpayers with a total.
func (r reader) DocumentsByTotal(ctx context.Context, env fiscal.Environment, total string, part IDSpan) ([]Candidate, error) {
	return collect(r.rows(ctx, searchDocuments, `
		SELECT document_id FROM document_index
		WHERE environment = $1 AND (total, document_id) >= ($2, $3) AND (total, document_id) < ($2, $4)
		ORDER BY total DESC, document_id DESC`+part.limit(), part.args(env, total)...), (*Candidate).columns)
}

// DocumentsByTotalOf lists the documents of a taxpayer with a total.
func (r reader) DocumentsByTotalOf(ctx context.Context, scope Scope, total string, part IDSpan) ([]Candidate, error) {
	return collect(r.rows(ctx, searchDocuments, `
		SELECT document_id FROM document_index
		WHERE environment = $1 AND taxpayer_id = $2 AND (total, document_id) >= ($3, $4) AND (total, document_id) < ($3, $5)
		ORDER BY total DESC, document_id DESC`+part.limit(), part.args(scope.Environment, scope.TaxpayerID, total)...), (*Candidate).columns)
}

// DocumentsOfBuyer lists the documents of a buyer.
func (r reader) DocumentsOfBuyer(ctx context.Context, b Buyer, part IDSpan) ([]Candidate, error) {
	return collect(r.rows(ctx, searchDocuments, `
		SELECT document_id FROM document_index
		WHERE environment = $1 AND taxpayer_id = $2 AND buyer_id <> ''
			AND (buyer_id, document_id) >= ($3, $4) AND (buyer_id, document_id) < ($3, $5)
		ORDER BY buyer_id DESC, document_id DESC`+part.limit(), part.args(b.Environment, b.TaxpayerID, b.ID)...), (*Candidate).columns)
}

// fewHits limits the results of a search for a value that a document has alone.
const fewHits = ` LIMIT 100`

// DocumentsByValue returns the ids of the documents with an external id, an idempotency
// key, or an e-NCF that they show or had. It asks once for each taxpayer, from the index
// that keeps the value unique.
func (r reader) DocumentsByValue(ctx context.Context, within Within, value string) (ids []string, err error) {
	and, more := within.and(`t.id`, 3)
	args := append([]any{within.Environment, value}, more...)
	// SQLite joins the tables of CROSS JOIN in this order: the taxpayers are few.
	texts := []string{`
		SELECT i.document_id FROM taxpayers t CROSS JOIN documents i
		WHERE i.environment = $1 AND i.taxpayer_id = t.id AND i.external_id = $2` + and + fewHits, `
		SELECT i.document_id FROM taxpayers t CROSS JOIN idempotency k CROSS JOIN documents i
		WHERE k.environment = $1 AND k.taxpayer_id = t.id AND k.operation = 'create_invoice' AND k.key = $2
			AND i.environment = $1 AND i.taxpayer_id = k.taxpayer_id AND i.id = k.object_id` + and + fewHits}
	if fiscal.IsENCF(value) {
		texts = append(texts, `
		SELECT coalesce(n.former_document_id, n.document_id) FROM taxpayers t CROSS JOIN issued_documents n
		WHERE n.environment = $1 AND n.rnc = t.rnc AND n.encf = $2 AND n.taxpayer_id = t.id`+and+`
			AND (n.former_document_id IS NOT NULL OR EXISTS (SELECT 1 FROM documents i WHERE i.document_id = n.document_id AND i.encf IS NOT NULL))`+fewHits)
	}
	for _, text := range texts {
		if ids, err = r.appendIDs(ctx, ids, text, args); err != nil {
			return nil, err
		}
	}
	return ids, nil
}

// DocumentsByTrackID returns the ids of the documents of an environment with a trackId.
func (r reader) DocumentsByTrackID(ctx context.Context, env fiscal.Environment, trackID string) ([]string, error) {
	return r.appendIDs(ctx, nil, `
		SELECT document_id FROM document_index WHERE environment = $1 AND track_id = $2 AND track_id <> ''`+fewHits, []any{env, trackID})
}

// DocumentsOfRequest returns the ids of the documents of an environment that an HTTP
// request was about, or whose stored answer has the id.
func (r reader) DocumentsOfRequest(ctx context.Context, env fiscal.Environment, requestID string) ([]string, error) {
	ids, err := r.appendIDs(ctx, nil, `
		SELECT i.document_id FROM history h CROSS JOIN documents i
		WHERE h.environment = $1 AND h.request_id = $2 AND h.request_id <> ''
			AND i.environment = h.environment AND i.taxpayer_id = h.taxpayer_id AND i.id = h.invoice_id`+fewHits, []any{env, requestID})
	if err != nil {
		return nil, err
	}
	return r.appendIDs(ctx, ids, `
		SELECT i.document_id FROM taxpayers t CROSS JOIN documents i
		WHERE i.environment = $1 AND i.taxpayer_id = t.id AND i.id = $2`+fewHits, []any{env, invoiceOfAnswer(requestID)})
}

// DocumentsByID returns the ids of the documents with an id, or whose invoice has it.
func (r reader) DocumentsByID(ctx context.Context, within Within, id string) ([]string, error) {
	and, more := within.and(`t.id`, 3)
	return r.appendIDs(ctx, []string{id}, `
		SELECT i.document_id FROM taxpayers t CROSS JOIN documents i
		WHERE i.environment = $1 AND i.taxpayer_id = t.id AND i.id = $2`+and+fewHits, append([]any{within.Environment, id}, more...))
}

func (r reader) appendIDs(ctx context.Context, ids []string, text string, args []any) ([]string, error) {
	found, err := collect(r.rows(ctx, searchDocuments, text, args...), only[string])
	return append(ids, found...), err
}

// FoundDocuments reads documents by their ids. It leaves out those that the search may
// not show, and returns the others in no order.
func (r reader) FoundDocuments(ctx context.Context, within Within, documentIDs []string) ([]FoundDocument, error) {
	if len(documentIDs) == 0 {
		return nil, nil
	}
	// Without a condition on the environment, every engine uses the index of the ids.
	list, args := placeholders(documentIDs)
	all, err := collect(r.rows(ctx, "read found documents", `
		SELECT i.environment, i.taxpayer_id, coalesce(b.name, ''), coalesce(b.rnc, ''), CASE WHEN x.document_id IS NULL THEN 0 ELSE 1 END, `+qualified("i", invoiceColumns)+`
		FROM documents i LEFT JOIN document_index x ON x.document_id = i.document_id
		LEFT JOIN buyers b ON b.environment = x.environment AND b.taxpayer_id = x.taxpayer_id AND b.id = x.buyer_id
		WHERE i.document_id IN (`+list+`)`, args...), func(f *FoundDocument) []any {
		return append([]any{&f.Environment, &f.TaxpayerID, &f.BuyerName, &f.BuyerRNC, &f.Indexed}, f.columns()...)
	})
	return slices.DeleteFunc(all, func(f FoundDocument) bool {
		return f.Environment != within.Environment || !within.Allows(f.TaxpayerID)
	}), err
}

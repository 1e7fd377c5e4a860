package overview

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/fiscalhub/fiscalhub/internal/cursor"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// ErrCursor means that a cursor does not belong to the search.
var ErrCursor = errors.New("overview: the cursor does not belong to this search")

// Query is a search of documents, the newest first. Empty fields do not filter.
type Query struct {
	// Text is what a person typed: an external id, e-NCF, trackId, RNC, name or amount,
	// the id of a request, document or invoice, or an idempotency key.
	Text     string
	Status   fiscal.Status
	Type     fiscal.Type
	Taxpayer string
	From, To fiscal.Date // days of the country on which documents were created, both included
	Cursor   string      // Page.Next of the page before; empty for the first page
	Limit    int         // documents of a page; 0: 50

	words []string // that the name of the buyer must have
}

const (
	defaultLimit = 50
	// MaxLimit is the largest page of a search.
	MaxLimit = 500
	// maxLooked is how many documents a search looks at for one page.
	maxLooked = 2000
	// maxBuyers is how many buyers a search by name or RNC follows. When more buyers have
	// the words, it looks through the newest documents for them.
	maxBuyers = 50
	// maxWordsLooked is how many words of names a search looks at.
	maxWordsLooked = 250
	// manyTaxpayers is from how many taxpayers on a list is read from the index of all
	// documents, and not from the lists of the taxpayers.
	manyTaxpayers = 20
	// clockMargin is how far the time in an id may be from the time of the creation.
	clockMargin = time.Hour
)

// Page is a part of the result of a search.
type Page struct {
	Documents []store.FoundDocument
	Next      string // cursor of the next page; empty on the last one
	// Partial says that the search looked at as many documents as a page may, and did not
	// fill the page. The next page goes on from there.
	Partial bool
	// Common says that many buyers have the words of the search. Another word, or a filter
	// for the taxpayer, fills a page that is Partial.
	Common bool
}

// Searcher answers searches. Its methods may be called at the same time.
type Searcher struct {
	store   *store.Store
	cursors func() cursor.Keys
	now     func() time.Time
	looks   int // documents that a search looks at for one page
}

// NewSearcher returns a searcher. The cursors of its pages are made with the keys.
func NewSearcher(s *store.Store, cursors func() cursor.Keys, now func() time.Time) *Searcher {
	return &Searcher{store: s, cursors: cursors, now: now, looks: maxLooked}
}

// Search returns a page of documents. It shows documents of the taxpayers of within
// alone. The error is ErrCursor when the cursor is that of another search. It reads a
// bounded number of rows, however many documents there are.
func (s *Searcher) Search(ctx context.Context, within store.Within, q Query) (Page, error) {
	q.Text = strings.TrimSpace(q.Text)
	if q.Limit <= 0 {
		q.Limit = defaultLimit
	}
	q.Limit = min(q.Limit, MaxLimit)
	within, ok := narrow(within, q.Taxpayer)
	if !ok {
		return Page{}, nil
	}
	list := cursor.NewList("documents", string(within.Environment), strings.Join(within.Taxpayers, ","), q.Text, string(q.Status), string(q.Type),
		q.Taxpayer, q.From.String(), q.To.String())
	before := ""
	if q.Cursor != "" {
		id, ok := s.cursors().Read(q.Cursor, list)
		if !ok {
			return Page{}, ErrCursor
		}
		before = id.String()
	}
	page, next, err := s.page(ctx, within, q, before)
	if err != nil || next == "" {
		return page, err
	}
	id, err := uuid.Parse(next)
	if err != nil {
		return page, err
	}
	page.Next = s.cursors().Make(id, list)
	return page, nil
}

// narrow limits a search to a taxpayer. ok is false when the search may not show it.
func narrow(within store.Within, taxpayer string) (store.Within, bool) {
	if taxpayer == "" {
		return within, within.All || len(within.Taxpayers) > 0
	}
	if !within.Allows(taxpayer) {
		return within, false
	}
	return store.Within{Environment: within.Environment, Taxpayers: []string{taxpayer}}, true
}

// A source lists candidates of a search, the newest first.
type source struct {
	byInvoice bool // in the order of the ids of invoices, not of documents
	read      func(ctx context.Context, part store.IDSpan) ([]store.Candidate, error)
}

func (s source) key(c store.Candidate) string {
	if s.byInvoice {
		return c.InvoiceID
	}
	return c.DocumentID
}

// page reads candidates and their documents until the page is full. next is the id of
// the last document that the page has looked at; empty at the end of the list.
func (s *Searcher) page(ctx context.Context, within store.Within, q Query, before string) (page Page, next string, err error) {
	src, common, err := s.source(ctx, within, q)
	if err != nil {
		return page, "", err
	}
	page.Common, q.words = common != nil, common
	part := store.IDSpan{Before: q.lastID(s.now())}
	if before != "" && src.byInvoice {
		if before, err = s.invoiceOf(ctx, within, before); err != nil {
			return page, "", err
		}
	}
	if before != "" {
		part.Before = min(part.Before, before)
	}
	part.Limit = q.Limit + 1
	for looked := 0; looked < s.looks; {
		candidates, err := src.read(ctx, part)
		if err != nil {
			return page, "", err
		}
		found, passed, err := s.load(ctx, within, q, candidates)
		if err != nil {
			return page, "", err
		}
		for _, f := range found {
			if len(page.Documents) == q.Limit {
				return page, page.Documents[q.Limit-1].DocumentID, nil
			}
			page.Documents = append(page.Documents, f)
		}
		if len(candidates) < part.Limit || passed {
			return page, "", nil
		}
		last := candidates[len(candidates)-1]
		part.Before, next, looked = src.key(last), last.DocumentID, looked+len(candidates)
		part.Limit = nextStep(looked, len(page.Documents), q.Limit)
	}
	page.Partial = true
	return page, next, nil
}

// maxStep is how many documents a search looks at with one statement.
const maxStep = 400

// nextStep returns how many documents a search looks at next, after it has found some among
// those that it has looked at: a few more than it probably needs to fill the page.
func nextStep(looked, found, wanted int) int {
	missing := wanted + 1 - found
	return max(missing, min(missing*looked*5/4/max(found, 1), maxStep))
}

// invoiceOf returns the id of the invoice of a document.
func (s *Searcher) invoiceOf(ctx context.Context, within store.Within, documentID string) (string, error) {
	found, err := s.store.FoundDocuments(ctx, within, []string{documentID})
	if err != nil || len(found) == 0 {
		return "", errors.Join(err, ErrCursor)
	}
	return found[0].ID, nil
}

// lastID returns an id that no document has that was created on the days of a query. It
// is needed for days in the past alone.
func (q Query) lastID(now time.Time) string {
	if end := q.To.End().Add(clockMargin); !q.To.IsZero() && end.Before(now) {
		return store.FirstIDAt(end)
	}
	return lastID
}

// passed reports whether a document is so old that no later one of the list was created
// on the days of a query.
func (q Query) passed(f store.FoundDocument) bool {
	return !q.From.IsZero() && f.CreatedAt.Before(startOf(q.From).Add(-clockMargin))
}

// startOf returns the first moment of a day.
func startOf(d fiscal.Date) time.Time {
	return time.Date(d.Year(), d.Month(), d.Day(), 0, 0, 0, 0, fiscal.Zone())
}

// load reads the documents of candidates that the query selects, in their order. passed
// reports that the days of the query have been passed.
func (s *Searcher) load(ctx context.Context, within store.Within, q Query, candidates []store.Candidate) (found []store.FoundDocument, passed bool, err error) {
	ids := make([]string, len(candidates))
	order := make(map[string]int, len(candidates))
	for i, c := range candidates {
		ids[i], order[c.DocumentID] = c.DocumentID, i
	}
	if found, err = s.store.FoundDocuments(ctx, within, ids); err != nil {
		return nil, false, err
	}
	passed = slices.ContainsFunc(found, q.passed)
	found = slices.DeleteFunc(found, func(f store.FoundDocument) bool { return !q.selects(f) })
	slices.SortFunc(found, func(a, b store.FoundDocument) int { return order[a.DocumentID] - order[b.DocumentID] })
	for i := range found {
		if err := s.addBuyer(ctx, &found[i]); err != nil {
			return nil, false, err
		}
	}
	return found, passed, nil
}

// addBuyer reads the buyer of a document that is not indexed yet.
func (s *Searcher) addBuyer(ctx context.Context, f *store.FoundDocument) error {
	if f.Indexed {
		return nil
	}
	request, err := s.store.Request(ctx, f.Scope, f.ID)
	if err != nil {
		return err
	}
	buyer := buyerOf(f.Scope, request)
	f.BuyerName, f.BuyerRNC = buyer.Name, buyer.RNC
	return nil
}

func (q Query) selects(f store.FoundDocument) bool {
	day := fiscal.DateOf(f.CreatedAt)
	return (q.Status == "" || f.Status == q.Status) && (q.Type == "" || f.Type == q.Type) &&
		(q.From.IsZero() || !day.Before(q.From)) && (q.To.IsZero() || !day.After(q.To)) &&
		(q.words == nil || hasWords(words(f.BuyerName), q.words))
}

// SameBuyer lists the newest other documents of the buyer of a document. It is empty
// when the document names no buyer, or is not indexed yet.
func (s *Searcher) SameBuyer(ctx context.Context, scope store.Scope, documentID string, limit int) ([]store.FoundDocument, error) {
	buyer, err := s.store.BuyerOfDocument(ctx, scope, documentID)
	if err != nil {
		return nil, notFoundIsNone(err)
	}
	candidates, err := s.store.DocumentsOfBuyer(ctx, buyer, store.IDSpan{Before: lastID, Limit: limit + 1})
	if err != nil {
		return nil, err
	}
	candidates = slices.DeleteFunc(candidates, func(c store.Candidate) bool { return c.DocumentID == documentID })
	within := store.Within{Environment: scope.Environment, Taxpayers: []string{scope.TaxpayerID}}
	found, _, err := s.load(ctx, within, Query{}, candidates[:min(len(candidates), limit)])
	return found, err
}

// notFoundIsNone returns nil for store.ErrNotFound, and other errors as they are.
func notFoundIsNone(err error) error {
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	return err
}

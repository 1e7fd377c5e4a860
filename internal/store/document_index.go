package store

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

// A Walk is one of the passes that the indexer makes over the documents. Its position is
// the id that it has reached.
type Walk string

// The walks. Created goes over new documents in the order of their ids, Changed over
// changes of a status in the order of the history entries. Both miss a row that
// is committed late, with an id below the position. CreatedBefore and ChangedBefore
// follow at a distance and find such rows. They start at the first row, so they also
// index what existed before the indexer.
const (
	WalkCreated       Walk = "created"
	WalkChanged       Walk = "changed"
	WalkCreatedBefore Walk = "created_before"
	WalkChangedBefore Walk = "changed_before"
)

// ErrIndexerReplaced means that another node has the lease of the indexer.
var ErrIndexerReplaced = errors.New("store: another node indexes the documents")

// FirstIDAt returns an id that is not above any id that NewID makes at the moment t or
// later.
func FirstIDAt(t time.Time) string {
	var id uuid.UUID
	ms := uint64(max(t.UnixMilli(), 0))
	for i := range 6 {
		id[i] = byte(ms >> (8 * (5 - i)) & 0xff)
	}
	id[6], id[8] = 0x70, 0x80
	return id.String()
}

// NewIDAt is NewID for a moment that has passed.
func NewIDAt(t time.Time) string {
	id := uuid.Must(uuid.NewV7())
	first := uuid.MustParse(FirstIDAt(t))
	copy(id[:6], first[:6])
	return id.String()
}

// LeaseIndexer gives the lease of the indexer to a holder until a moment, and returns the
// positions of all walks. The first call stores the walks: Created and Changed start at
// the id first. It returns ErrIndexerReplaced while another holder has the lease.
func (s *Store) LeaseIndexer(ctx context.Context, holder, first string, now, until time.Time) (positions map[Walk]string, err error) {
	err = s.Update(ctx, func(tx *Tx) error {
		for walk, start := range map[Walk]string{WalkCreated: first, WalkChanged: first, WalkCreatedBefore: "", WalkChangedBefore: ""} {
			if err := tx.exec(ctx, "lease the indexer", `
				INSERT INTO index_walks (walk, position, holder, held_until) VALUES ($1, $2, '', 0)
				ON CONFLICT DO NOTHING`, walk, start); err != nil {
				return err
			}
		}
		err := tx.writeOne(ctx, "lease the indexer", ErrIndexerReplaced, do(`
			UPDATE index_walks SET holder = $2, held_until = $3
			WHERE walk = $1 AND (holder = $2 OR held_until <= $4 OR held_until > $5)`,
			string(WalkCreated), holder, micros(until), micros(now), micros(now.Add(longestLease))))
		if err != nil {
			return err
		}
		positions, err = tx.IndexPositions(ctx)
		return err
	})
	return positions, err
}

// IndexPositions returns how far the walks of the indexer have come. It is empty before
// the indexer has run.
func (r reader) IndexPositions(ctx context.Context) (map[Walk]string, error) {
	all := map[Walk]string{}
	_, err := collect(r.rows(ctx, "read the walks of the indexer", `SELECT walk, position FROM index_walks`), func(w *Walk) []any {
		return []any{w, into(func(position string) { all[*w] = position })}
	})
	return all, err
}

// ToIndex is a document as it is stored, and what the index has of it.
type ToIndex struct {
	Scope
	Position   string // of the walk that found it
	DocumentID string
	Total      string
	TrackID    string
	Status     fiscal.Status
	CreatedAt  time.Time
	Request    []byte // the first 16 KiB of the canonical request; nil for a document that is in the index
	// VerdictAt is when the change of status that was found gave the document its
	// verdict; zero for another change.
	VerdictAt time.Time
	// Indexed is what the index has; nil when it lacks the document.
	Indexed *Indexed
}

// Indexed is what the index and the counts have of a document.
type Indexed struct {
	Status    fiscal.Status
	TrackID   string
	VerdictAt time.Time // zero: none was counted
}

// The beginning of a request is enough for the index: both engines then read and
// decompress only a part of a large one. 16384 is headSize.
const toIndexColumns = `i.environment, i.taxpayer_id, i.document_id, i.document_total, coalesce(i.track_id, ''), i.status, i.created_at,
	CASE WHEN x.document_id IS NULL THEN substr(i.request, 1, 16384) END, x.status, x.track_id, x.verdict_at`

func (d *ToIndex) columns() []any {
	x := new(Indexed)
	status := into(func(status fiscal.Status) { x.Status, d.Indexed = status, x })
	return []any{
		&d.Environment, &d.TaxpayerID, &d.DocumentID, &d.Total, &d.TrackID, &d.Status, instant(&d.CreatedAt), (*storedHead)(&d.Request),
		status, orZero(&x.TrackID), instant(&x.VerdictAt),
	}
}

// CreatedAfter reads the documents of all environments that the index lacks, in the order
// of their ids, after a position and before another. It looks at no more than look
// documents; last is the last one that it looked at, or empty when there is none.
func (r reader) CreatedAfter(ctx context.Context, after, before string, look int) (missing []ToIndex, last string, err error) {
	// The limit is part of the statement, so that PostgreSQL knows that it joins few rows.
	all, err := collect(r.rows(ctx, "list documents to index", `
		SELECT `+toIndexColumns+` FROM (
			SELECT environment, taxpayer_id, document_id, document_total, track_id, status, created_at, request FROM documents
			WHERE document_id > $1 AND document_id < $2 ORDER BY document_id LIMIT `+strconv.Itoa(look)+`) AS i
		LEFT JOIN document_index x ON x.document_id = i.document_id ORDER BY i.document_id`, after, before), (*ToIndex).columns)
	if err != nil || len(all) == 0 {
		return nil, "", err
	}
	for i := range all {
		all[i].Position = all[i].DocumentID
	}
	last = all[len(all)-1].Position
	return slices.DeleteFunc(all, func(d ToIndex) bool { return d.Indexed != nil }), last, nil
}

// ChangedAfter reads the documents of all environments whose status has changed, in the
// order of the history entries, after a position and before another. It looks at no more
// than look entries; last is the last one, or empty when there is none.
func (r reader) ChangedAfter(ctx context.Context, after, before string, look int) (changed []ToIndex, last string, err error) {
	changed, err = collect(r.rows(ctx, "list changed documents", `
		SELECT h.id, h.at, h.status, `+toIndexColumns+` FROM (
			SELECT id, at, status, environment, taxpayer_id, invoice_id FROM history
			WHERE kind = 'status_changed' AND id > $1 AND id < $2 ORDER BY id LIMIT `+strconv.Itoa(look)+`) AS h
		JOIN documents i ON i.environment = h.environment AND i.taxpayer_id = h.taxpayer_id AND i.id = h.invoice_id
		LEFT JOIN document_index x ON x.document_id = i.document_id ORDER BY h.id`, after, before), func(d *ToIndex) []any {
		var at time.Time
		status := into(func(status fiscal.Status) {
			if isVerdict(status) {
				d.VerdictAt = at
			}
		})
		return append([]any{&d.Position, instant(&at), status}, d.columns()...)
	})
	if err != nil || len(changed) == 0 {
		return nil, "", err
	}
	return changed, changed[len(changed)-1].Position, nil
}

func isVerdict(s fiscal.Status) bool {
	return s == fiscal.Accepted || s == fiscal.AcceptedConditional || s == fiscal.Rejected || s == fiscal.ValidationFailed
}

// IndexEntry is the row of a document for the index.
type IndexEntry struct {
	Scope
	DocumentID string
	Buyer      Buyer // zero: the document names none
	Total      string
	TrackID    string
	Status     fiscal.Status
	CreatedAt  time.Time
	VerdictAt  time.Time // zero: none is known
	Indexed    *Indexed  // as read; nil: the document is new in the index
}

// Index stores entries, at most one for each document, counts them, and moves a walk to a
// position. A document that the index has already is counted once: the difference between
// the entry and what was read is added. It returns ErrIndexerReplaced, and stores nothing, when the holder has
// lost the lease.
func (s *Store) Index(ctx context.Context, holder string, walk Walk, position string, entries []IndexEntry, until time.Time) error {
	return s.Update(ctx, func(tx *Tx) error {
		err := tx.writeOne(ctx, "index", ErrIndexerReplaced, do(`
			UPDATE index_walks SET held_until = $3 WHERE walk = $1 AND holder = $2`, string(WalkCreated), holder, micros(until)))
		if err != nil {
			return err
		}
		if err := tx.exec(ctx, "index", `UPDATE index_walks SET position = $2 WHERE walk = $1`, walk, position); err != nil {
			return err
		}
		counts := countChanges{}
		fresh := make([]IndexEntry, 0, len(entries))
		for _, e := range entries {
			if e.Indexed == nil {
				fresh = append(fresh, e)
				continue
			}
			if err := tx.reindex(ctx, e, counts); err != nil {
				return err
			}
		}
		if err := tx.indexNew(ctx, fresh, counts); err != nil {
			return err
		}
		return tx.addCounts(ctx, counts)
	})
}

// indexNew inserts the rows of documents that the index lacks.
func (tx *Tx) indexNew(ctx context.Context, entries []IndexEntry, counts countChanges) error {
	if len(entries) == 0 {
		return nil
	}
	if err := tx.addBuyers(ctx, entries); err != nil {
		return err
	}
	of := map[string]IndexEntry{}
	values := make([]any, 0, 9*len(entries))
	for _, e := range entries {
		of[e.DocumentID] = e
		values = append(values, e.DocumentID, string(e.Environment), e.TaxpayerID, e.Buyer.ID, e.Total, e.TrackID, string(e.Status), micros(e.CreatedAt), optionalMicros(e.VerdictAt))
	}
	return inChunks(values, 9, func(some []any, list string) error {
		fresh, err := collect(tx.rows(ctx, "index", `
			INSERT INTO document_index (document_id, environment, taxpayer_id, buyer_id, total, track_id, status, created_at, verdict_at)
			VALUES `+list+` ON CONFLICT DO NOTHING RETURNING document_id`, some...), only[string])
		for _, id := range fresh {
			counts.add(of[id], nil)
		}
		return err
	})
}

// reindex changes the row of a document that the index has.
func (tx *Tx) reindex(ctx context.Context, e IndexEntry, counts countChanges) error {
	verdict := e.VerdictAt
	if !e.Indexed.VerdictAt.IsZero() {
		verdict = e.Indexed.VerdictAt
	}
	changed, err := tx.write(ctx, "index", do(`
		UPDATE document_index SET status = $4, track_id = $5, verdict_at = $6
		WHERE document_id = $1 AND environment = $2 AND taxpayer_id = $3 AND status = $7`,
		e.DocumentID, string(e.Environment), e.TaxpayerID, string(e.Status), e.TrackID, optionalMicros(verdict), string(e.Indexed.Status)))
	if changed {
		counts.add(e, e.Indexed)
	}
	return err
}

// maxChunk is how many rows one INSERT has at most.
const maxChunk = 64

// inChunks calls insert for the values of many rows, some at a time, with the list
// ($1, $2), ($3, $4), … of their placeholders. The number of rows is a power of two, so
// that the engine prepares only a few different statements.
func inChunks(values []any, columns int, insert func(some []any, list string) error) error {
	for size := maxChunk; len(values) > 0; {
		for size*columns > len(values) {
			size /= 2
		}
		if err := insert(values[:size*columns], valueRows(size, columns)); err != nil {
			return err
		}
		values = values[size*columns:]
	}
	return nil
}

// valueRows returns the list ($1, $2), ($3, $4), … of an INSERT.
func valueRows(rows, columns int) string {
	lists := make([]string, rows)
	for i := range lists {
		lists[i] = "(" + numbered(i*columns+1, columns) + ")"
	}
	return strings.Join(lists, ", ")
}

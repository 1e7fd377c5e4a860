package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

// Buyer is a buyer of a taxpayer, as its documents name it. A buyer whose name is
// written in two ways is two buyers with the same RNC.
type Buyer struct {
	Scope
	ID    string
	RNC   string   // empty: the documents have none
	Name  string   // as the document has it
	Words []string // of the name, in the form of the search
}

// NewBuyer returns a buyer. Its id follows from its scope, RNC and words, so that every
// document with these values has the same buyer. It is zero when there are neither.
func NewBuyer(scope Scope, rnc, name string, words []string) Buyer {
	if rnc == "" && len(words) == 0 {
		return Buyer{}
	}
	digest := sha256.Sum256([]byte(strings.Join([]string{string(scope.Environment), scope.TaxpayerID, rnc, strings.Join(words, " ")}, "\x00")))
	return Buyer{Scope: scope, ID: hex.EncodeToString(digest[:12]), RNC: rnc, Name: name, Words: words}
}

// addBuyers stores the buyers of entries that the database does not have.
func (tx *Tx) addBuyers(ctx context.Context, entries []IndexEntry) error {
	seen := map[string]bool{}
	var buyers, words []any
	for _, e := range entries {
		b := e.Buyer
		if b.ID == "" || seen[b.ID] {
			continue
		}
		seen[b.ID] = true
		buyers = append(buyers, string(b.Environment), b.TaxpayerID, b.ID, b.RNC, b.Name, strings.Join(b.Words, " "))
		done := map[string]bool{}
		for _, word := range b.Words {
			if !done[word] {
				done[word] = true
				words = append(words, string(b.Environment), b.TaxpayerID, word, b.ID)
			}
		}
	}
	err := inChunks(buyers, 6, func(some []any, list string) error {
		return tx.exec(ctx, "add buyers", `
			INSERT INTO buyers (environment, taxpayer_id, id, rnc, name, words)
			VALUES `+list+` ON CONFLICT DO NOTHING`, some...)
	})
	if err != nil {
		return err
	}
	return inChunks(words, 4, func(some []any, list string) error {
		return tx.exec(ctx, "add words of buyers", `
			INSERT INTO buyer_words (environment, taxpayer_id, word, buyer_id)
			VALUES `+list+` ON CONFLICT DO NOTHING`, some...)
	})
}

const buyerColumns = `b.environment, b.taxpayer_id, b.id, b.rnc, b.name, b.words`

func (b *Buyer) columns() []any {
	return []any{&b.Environment, &b.TaxpayerID, &b.ID, &b.RNC, &b.Name, via(&b.Words, strings.Fields)}
}

// Within limits a search to an environment and to taxpayers of it.
type Within struct {
	Environment fiscal.Environment
	// All means every taxpayer: the search of an operator or an auditor. Taxpayers then
	// does not count.
	All       bool
	Taxpayers []string
}

// Allows reports whether the search may show a row of a taxpayer.
func (w Within) Allows(taxpayerID string) bool {
	return w.All || slices.Contains(w.Taxpayers, taxpayerID)
}

// and returns the condition on the taxpayers for a statement whose next argument is
// $next, and its arguments.
func (w Within) and(column string, next int) (condition string, args []any) {
	switch {
	case w.All:
		return "", nil
	case len(w.Taxpayers) == 0:
		return ` AND 1 = 0`, nil
	}
	list, args := placeholdersFrom(next, w.Taxpayers)
	return ` AND ` + column + ` IN (` + list + `)`, args
}

// BuyersByRNC lists up to limit buyers with an RNC.
func (r reader) BuyersByRNC(ctx context.Context, within Within, rnc string, limit int) ([]Buyer, error) {
	and, args := within.and(`b.taxpayer_id`, 3)
	return collect(r.rows(ctx, "find buyers by RNC", `
		SELECT `+buyerColumns+` FROM buyers b WHERE b.environment = $1 AND b.rnc = $2`+and+`
		LIMIT `+strconv.Itoa(limit), append([]any{within.Environment, rnc}, args...)...), (*Buyer).columns)
}

// CountBuyersByWord counts the words with a prefix in the names of buyers, up to limit.
func (r reader) CountBuyersByWord(ctx context.Context, within Within, prefix string, limit int) (int, error) {
	and, args := within.and(`w.taxpayer_id`, 4)
	return one(r.rows(ctx, "count buyers by name", `
		SELECT count(*) FROM (
			SELECT 1 FROM buyer_words w WHERE w.environment = $1 AND w.word >= $2 AND w.word < $3`+and+` LIMIT `+strconv.Itoa(limit)+`) AS found`,
		append([]any{within.Environment, prefix, prefix + lastRune}, args...)...), only[int])
}

// lastRune follows a prefix in the upper limit of the words that have it.
const lastRune = "\U0010FFFF"

// BuyersByWord lists buyers that have a word of their name with a prefix, in the order of
// that word. It looks at up to limit words.
func (r reader) BuyersByWord(ctx context.Context, within Within, prefix string, limit int) ([]Buyer, error) {
	and, args := within.and(`w.taxpayer_id`, 4)
	return collect(r.rows(ctx, "find buyers by name", `
		SELECT `+buyerColumns+` FROM (
			SELECT w.environment, w.taxpayer_id, w.buyer_id, w.word FROM buyer_words w
			WHERE w.environment = $1 AND w.word >= $2 AND w.word < $3`+and+`
			ORDER BY w.word LIMIT `+strconv.Itoa(limit)+`) AS found
		JOIN buyers b ON b.environment = found.environment AND b.taxpayer_id = found.taxpayer_id AND b.id = found.buyer_id
		ORDER BY found.word, b.taxpayer_id, b.id`,
		append([]any{within.Environment, prefix, prefix + lastRune}, args...)...), (*Buyer).columns)
}

// BuyerOfDocument reads the buyer of a document from the index. The error is ErrNotFound
// when the document names no buyer, or is not indexed yet.
func (r reader) BuyerOfDocument(ctx context.Context, scope Scope, documentID string) (Buyer, error) {
	return one(r.rows(ctx, "read the buyer of a document", `
		SELECT `+buyerColumns+` FROM document_index x
		JOIN buyers b ON b.environment = x.environment AND b.taxpayer_id = x.taxpayer_id AND b.id = x.buyer_id
		WHERE x.environment = $1 AND x.taxpayer_id = $2 AND x.document_id = $3`, scope.Environment, scope.TaxpayerID, documentID), (*Buyer).columns)
}

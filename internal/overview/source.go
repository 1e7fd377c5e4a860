package overview

import (
	"context"
	"regexp"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// source returns where the candidates of a query come from. common are the words of the
// query when so many buyers have them that the candidates are all documents.
func (s *Searcher) source(ctx context.Context, within store.Within, q Query) (src source, common []string, err error) {
	if q.Text == "" {
		return s.listSource(within, q), nil, nil
	}
	var all []source
	ids, err := s.exact(ctx, within, q.Text)
	if err != nil {
		return src, nil, err
	}
	if len(ids) > 0 {
		all = append(all, fixedSource(ids))
	}
	total, isAmount := amount(q.Text)
	if isAmount {
		all = append(all, s.totalSources(within, total)...)
	}
	buyers, common, err := s.buyers(ctx, within, q.Text, len(ids) > 0 || isAmount)
	if err != nil {
		return src, nil, err
	}
	if common != nil {
		return s.listSource(within, q), common, nil
	}
	for _, b := range buyers {
		all = append(all, source{read: func(ctx context.Context, part store.IDSpan) ([]store.Candidate, error) {
			return s.store.DocumentsOfBuyer(ctx, b, part)
		}})
	}
	return merged(all), nil, nil
}

// listSource lists all documents, or those with a status.
func (s *Searcher) listSource(within store.Within, q Query) source {
	if within.All || len(within.Taxpayers) > manyTaxpayers {
		return source{read: func(ctx context.Context, part store.IDSpan) ([]store.Candidate, error) {
			if q.Status != "" {
				return s.store.DocumentsByStatus(ctx, within.Environment, q.Status, part)
			}
			return s.store.AllDocuments(ctx, part)
		}}
	}
	var all []source
	for _, taxpayer := range within.Taxpayers {
		scope := store.Scope{Environment: within.Environment, TaxpayerID: taxpayer}
		all = append(all, source{true, func(ctx context.Context, part store.IDSpan) ([]store.Candidate, error) {
			return s.store.InvoicesOf(ctx, scope, q.Status, part)
		}})
	}
	return merged(all)
}

// totalSources list the documents with a total.
func (s *Searcher) totalSources(within store.Within, total string) (all []source) {
	if within.All || len(within.Taxpayers) > manyTaxpayers {
		return []source{{read: func(ctx context.Context, part store.IDSpan) ([]store.Candidate, error) {
			return s.store.DocumentsByTotal(ctx, within.Environment, total, part)
		}}}
	}
	for _, taxpayer := range within.Taxpayers {
		scope := store.Scope{Environment: within.Environment, TaxpayerID: taxpayer}
		all = append(all, source{read: func(ctx context.Context, part store.IDSpan) ([]store.Candidate, error) {
			return s.store.DocumentsByTotalOf(ctx, scope, total, part)
		}})
	}
	return all
}

// merged lists the candidates of several sources, which have the same order, each once.
func merged(all []source) source {
	switch len(all) {
	case 0:
		return fixedSource(nil)
	case 1:
		return all[0]
	}
	m := source{byInvoice: all[0].byInvoice}
	m.read = func(ctx context.Context, part store.IDSpan) (found []store.Candidate, err error) {
		seen := map[string]bool{}
		for _, one := range all {
			some, err := one.read(ctx, part)
			if err != nil {
				return nil, err
			}
			for _, c := range some {
				if !seen[c.DocumentID] {
					seen[c.DocumentID] = true
					found = append(found, c)
				}
			}
		}
		slices.SortFunc(found, func(a, b store.Candidate) int { return strings.Compare(m.key(b), m.key(a)) })
		return found[:min(len(found), part.Limit)], nil
	}
	return m
}

// fixedSource lists documents that are known.
func fixedSource(ids []string) source {
	slices.Sort(ids)
	slices.Reverse(ids)
	ids = slices.Compact(ids)
	return source{read: func(_ context.Context, part store.IDSpan) (found []store.Candidate, err error) {
		for _, id := range ids {
			if id < part.Before && id >= part.From && len(found) < part.Limit {
				found = append(found, store.Candidate{DocumentID: id})
			}
		}
		return found, nil
	}}
}

// maxText is the longest text that can be an identifier.
const maxText = 255

// exact returns the documents with a text as identifier. Some may belong to others, or
// not exist: FoundDocuments drops them.
func (s *Searcher) exact(ctx context.Context, within store.Within, text string) ([]string, error) {
	if len(text) > maxText || strings.ContainsRune(text, 0) {
		return nil, nil
	}
	value := text
	if upper := strings.ToUpper(text); fiscal.IsENCF(upper) {
		value = upper
	}
	ids, err := s.store.DocumentsByValue(ctx, within, value)
	if err != nil {
		return nil, err
	}
	tracked, err := s.store.DocumentsByTrackID(ctx, within.Environment, text)
	if err != nil {
		return nil, err
	}
	ids = append(ids, tracked...)
	if strings.HasPrefix(text, "req_") {
		requested, err := s.store.DocumentsOfRequest(ctx, within.Environment, text)
		if err != nil {
			return nil, err
		}
		ids = append(ids, requested...)
	}
	if id, err := uuid.Parse(text); err == nil {
		found, err := s.store.DocumentsByID(ctx, within, id.String())
		if err != nil {
			return nil, err
		}
		ids = append(ids, found...)
	}
	return ids, nil
}

var (
	amountForm   = regexp.MustCompile(`^(?:RD\$|US\$|\$|DOP|USD)?\s*(\d{1,3}(?:,\d{3})+|\d{1,16})(?:\.(\d{1,2}))?$`)
	withoutSigns = strings.NewReplacer("-", "", " ", "")
)

// amount reads an amount as people write it, 1,180 or RD$ 1,180.00, and returns it in
// the form of the database.
func amount(text string) (string, bool) {
	m := amountForm.FindStringSubmatch(strings.ToUpper(text))
	if m == nil {
		return "", false
	}
	whole := strings.TrimLeft(strings.ReplaceAll(m[1], ",", ""), "0")
	if whole == "" {
		whole = "0"
	}
	return whole + "." + (m[2] + "00")[:2], true
}

// buyers returns the buyers that a text names: by RNC, or by the beginnings of words of
// the name. When more buyers have the words than a search follows, it returns the words
// instead. A text that is an identifier or an amount is searched as a name only while few
// buyers have it.
func (s *Searcher) buyers(ctx context.Context, within store.Within, text string, other bool) (found []store.Buyer, common []string, err error) {
	if rnc := withoutSigns.Replace(text); fiscal.IsRNC(rnc) || len(rnc) == 10 && strings.Trim(rnc, "0123456789") == "" {
		found, err = s.store.BuyersByRNC(ctx, within, rnc, maxBuyers)
		return found, nil, err
	}
	wanted := words(text)
	if len(wanted) == 0 || len(text) > maxText {
		return nil, nil, nil
	}
	rarest, fewest := "", maxWordsLooked+1
	for _, word := range wanted {
		n, err := s.store.CountBuyersByWord(ctx, within, word, maxWordsLooked)
		if err != nil {
			return nil, nil, err
		}
		if n < fewest {
			rarest, fewest = word, n
		}
	}
	if fewest < maxWordsLooked {
		if found, err = s.withWords(ctx, within, rarest, wanted); err != nil || len(found) <= maxBuyers {
			return found, nil, err
		}
	}
	if other {
		return nil, nil, nil
	}
	return nil, wanted, nil
}

// withWords returns the buyers that have a word, and all the wanted ones.
func (s *Searcher) withWords(ctx context.Context, within store.Within, word string, wanted []string) (found []store.Buyer, err error) {
	looked, err := s.store.BuyersByWord(ctx, within, word, maxWordsLooked)
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for _, b := range looked {
		if !seen[b.ID] && hasWords(b.Words, wanted) {
			seen[b.ID] = true
			found = append(found, b)
		}
	}
	return found, nil
}

// hasWords reports whether each wanted word is the beginning of a word of the name.
func hasWords(name, wanted []string) bool {
	for _, w := range wanted {
		if !slices.ContainsFunc(name, func(word string) bool { return strings.HasPrefix(word, w) }) {
			return false
		}
	}
	return true
}

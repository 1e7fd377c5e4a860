package pipeline

import (
	"context"
	"errors"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// NextRange returns the range that gives the next numbers of a taxpayer on a day, or what
// is wrong, as UsableRange does. While the authority is out of reach it is the range that
// ends last: the documents wait, and a number whose range has ended meanwhile is rejected.
// out says that this node does not reach the authority.
func NextRange(ctx context.Context, s *store.Store, ranges []store.NumberRange, day fiscal.Date, out bool) (store.NumberRange, string, error) {
	first, problem := UsableRange(ranges, day)
	last := lastingRange(ranges, first, day)
	if problem != "" || last.ID == first.ID {
		return first, problem, nil
	}
	if !out { // a node that has just started does not know it yet
		var err error
		if out, err = InContingency(ctx, s, first.Environment); err != nil {
			return first, "", err
		}
	}
	if out {
		return last, "", nil
	}
	return first, "", nil
}

// lastingRange returns the usable range that ends last; of several, the first of the list.
func lastingRange(ranges []store.NumberRange, first store.NumberRange, day fiscal.Date) store.NumberRange {
	last := first
	for _, r := range ranges {
		later := !last.Expires.IsZero() && (r.Expires.IsZero() || last.Expires.Before(r.Expires))
		if _, problem := UsableRange([]store.NumberRange{r}, day); problem == "" && later {
			last = r
		}
	}
	return last
}

// InContingency reports whether a contingency of an environment lasts.
func InContingency(ctx context.Context, s *store.Store, env fiscal.Environment) (bool, error) {
	last, err := s.Contingency(ctx, env)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	return err == nil && last.EndedAt.IsZero(), err
}

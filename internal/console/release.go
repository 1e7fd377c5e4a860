package console

import (
	"context"
	"sync"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/store"
)

// maxRelease is how long a release of fenced number ranges may take. What the authority
// has answered by then is stored, and the next release continues.
const maxRelease = 30 * time.Minute

// releases are the releases of fenced number ranges that this node runs.
type releases struct {
	mu      sync.Mutex
	running map[string]bool   // by taxpayer
	problem map[string]string // of the last release of a taxpayer
}

// begin reports whether a release of the taxpayer may begin: no other one runs.
func (r *releases) begin(taxpayerID string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.running[taxpayerID] {
		return false
	}
	if r.running == nil {
		r.running, r.problem = map[string]bool{}, map[string]string{}
	}
	r.running[taxpayerID] = true
	delete(r.problem, taxpayerID)
	return true
}

func (r *releases) end(taxpayerID string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.running, taxpayerID)
	if err != nil {
		r.problem[taxpayerID] = err.Error()
	}
}

func (r *releases) state(taxpayerID string) (running bool, problem string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.running[taxpayerID], r.problem[taxpayerID]
}

// releaseRanges starts to release the fenced number ranges of a taxpayer, in the
// background: the authority is asked about each doubtful number.
func (c *Console) releaseRanges(x *request) error {
	id := x.sentForm().Value("taxpayer")
	if id == "" {
		return errBadRequest
	}
	scope, err := x.viewer.Scope(id)
	if err != nil {
		return err
	}
	if _, err := c.o.Store.Taxpayer(x.Context(), scope.TaxpayerID); err != nil {
		return err
	}
	if c.o.Release == nil {
		return store.ErrNotFound
	}
	if c.releases.begin(scope.TaxpayerID) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(x.Context()), maxRelease)
		go func() {
			defer cancel()
			err := c.o.Release(ctx, scope)
			c.releases.end(scope.TaxpayerID, err)
			if err != nil {
				c.o.Log.Warn("A release of fenced number ranges did not end. The person sees it and may start it again.",
					"taxpayer", scope.TaxpayerID, "error", err.Error())
			}
		}()
	}
	return x.done(authorityAddress, "authority.release")
}

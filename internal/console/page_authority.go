package console

import (
	"context"
	"errors"
	"html/template"
	"sync"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/overview"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

const (
	authorityAddress   = "/console/authority"
	contingenciesShown = 20
	// largeSkew is how much the clocks may differ before the page warns.
	largeSkew = 10 * time.Second
)

func (c *Console) authorityPages() []page {
	return []page{
		get(authorityAddress, overseers(), on((*request).authority, c.showAuthority)),
		live(authorityAddress+"/state", overseers(), updates("authority-state", (*request).authority)),
		post(authorityAddress+"/release", overseers(), operators(), c.releaseRanges),
	}
}

// authorityView is what the page of the tax authority shows.
type authorityView struct {
	Live          bool // false in the sandbox, which has no authority
	State         overview.Authority
	Services      []serviceRow
	Contingencies []contingencyRow
	Fences        []fenceRow
	Clock         clockView
}

// serviceRow is a service of the authority as this node sees it.
type serviceRow struct {
	overview.ServiceFigures
	Open  bool // the node does not call it now
	Known bool // it has a circuit breaker
}

// Share returns the share of failures in percent.
func (r serviceRow) Share() string {
	if r.Calls == 0 {
		return "–"
	}
	tenths := r.Failures * 1000 / r.Calls
	return decimalOf(tenths)
}

// contingencyRow is a contingency with its length.
type contingencyRow struct {
	store.Contingency
	Lasted   time.Duration
	Deadline time.Time // of the documents that waited; zero while it lasts
}

// fenceRow is a fenced number range.
type fenceRow struct {
	overview.Fence
	Taxpayer string
	Running  bool   // this node releases it now
	Problem  string // why the last release of this node ended
}

// clockView is the difference between the clocks of the authority and of this node.
type clockView struct {
	Known bool
	Ahead time.Duration
	Large bool
}

func (c *Console) showAuthority(x *request, v authorityView) error {
	state, err := x.live(authorityAddress+"/state", "authority-state", v)
	if err != nil {
		return err
	}
	return x.render("authority", x.text("nav.authority"), struct{ State template.HTML }{state})
}

func (x *request) authority() (v authorityView, err error) {
	c := x.console
	v.Live = c.o.Environment != fiscal.Sandbox
	if !v.Live {
		return v, nil
	}
	if v.State, err = c.reporter.Authority(x.Context(), c.o.Environment); err != nil {
		return v, err
	}
	if v.Services, err = c.serviceRows(v.State.Circuits); err != nil {
		return v, err
	}
	contingencies, err := c.o.Store.Contingencies(x.Context(), c.o.Environment, contingenciesShown)
	if err != nil {
		return v, err
	}
	for _, one := range contingencies {
		row := contingencyRow{Contingency: one, Lasted: c.o.Now().Sub(one.StartedAt)}
		if !one.EndedAt.IsZero() {
			row.Lasted, row.Deadline = one.EndedAt.Sub(one.StartedAt), one.EndedAt.Add(fiscal.ContingencyTime)
		}
		v.Contingencies = append(v.Contingencies, row)
	}
	fences, err := c.reporter.Fences(x.Context(), x.viewer.Within())
	if err != nil {
		return v, err
	}
	for _, fence := range fences {
		taxpayer, err := c.o.Store.Taxpayer(x.Context(), fence.TaxpayerID)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return v, err
		}
		running, problem := c.releases.state(fence.TaxpayerID)
		v.Fences = append(v.Fences, fenceRow{fence, taxpayer.LegalName, running, problem})
	}
	if c.o.AuthorityClock != nil {
		v.Clock.Ahead, v.Clock.Known = c.o.AuthorityClock()
		v.Clock.Large = v.Clock.Ahead.Abs() > largeSkew
	}
	return v, nil
}

// serviceRows joins the figures of services with their circuit breakers.
func (c *Console) serviceRows(circuits map[string]bool) ([]serviceRow, error) {
	var rows []serviceRow
	if c.o.Services != nil {
		figures, err := c.o.Services()
		if err != nil {
			return nil, err
		}
		for _, f := range figures {
			open, known := circuits[f.Service]
			rows = append(rows, serviceRow{f, open, known})
		}
	}
	return rows, nil
}

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

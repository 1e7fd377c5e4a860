package pipeline

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/ecf"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// Live is the plan of certification and production. A taxpayer is ready once
// it has a certificate and authorised numbers; no numbers can be stored yet, so
// every creation is told what is missing and nothing is registered.
type Live struct {
	Store *store.Store
	Now   func() time.Time
}

// Check refuses a date after today in the country, or from before the taxpayer
// became an electronic issuer, and what the authority's format cannot carry. The
// issuer's own data are a matter of Ready.
func (l Live) Check(ctx context.Context, scope store.Scope, inv *fiscal.Invoice) error {
	taxpayer, err := l.Store.Taxpayer(ctx, scope.TaxpayerID)
	if err != nil {
		return err
	}
	var since fiscal.Date
	if taxpayer.ElectronicSince != "" {
		if since, err = fiscal.ParseDate(taxpayer.ElectronicSince); err != nil {
			return fmt.Errorf("pipeline: taxpayer %s: electronic since: %w", taxpayer.ID, err)
		}
	}
	if err := inv.CheckDate(l.Now(), since); err != nil {
		return err
	}
	return ecf.Check(ecf.Synthetic(), inv)
}

// Ready names every fact that is missing.
func (l Live) Ready(ctx context.Context, scope store.Scope, t fiscal.Type) (fiscal.Problems, error) {
	facts, err := ReadFacts(ctx, l.Store, scope)
	if err != nil {
		return nil, err
	}
	return facts.Missing(t, l.Now()), nil
}

// Birth queues an invoice.
func (Live) Birth(inv *fiscal.Invoice, _ Scenario) Birth {
	return Birth{Status: fiscal.Queued, Messages: inv.Warnings, Cause: "registered", Plan: "live", Stage: "issue"}
}

// Step has nothing to do: no invoice passes Ready.
func (Live) Step(_ context.Context, w Work) (Step, error) {
	return Step{}, errors.New("pipeline: no stage " + w.Job.Stage)
}

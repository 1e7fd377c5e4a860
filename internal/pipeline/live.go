package pipeline

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// Live is the plan of certification and production. A taxpayer is ready once
// it has a certificate and authorised numbers; none can be stored yet, so
// every creation is told what is missing and nothing is registered.
type Live struct {
	Store *store.Store
	Now   func() time.Time
}

// Check refuses a date after today in the country, or from before the taxpayer
// became an electronic issuer.
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
	return inv.CheckDate(l.Now(), since)
}

// Ready names every fact that is missing.
func (l Live) Ready(ctx context.Context, scope store.Scope, t fiscal.Type) (fiscal.Problems, error) {
	taxpayer, err := l.Store.Taxpayer(ctx, scope.TaxpayerID)
	if err != nil {
		return nil, err
	}
	return Missing(taxpayer, scope.Environment, t), nil
}

// Missing lists what keeps a taxpayer from issuing a type of invoice in an
// environment. The sandbox needs nothing.
func Missing(taxpayer store.Taxpayer, env fiscal.Environment, t fiscal.Type) fiscal.Problems {
	if env == fiscal.Sandbox {
		return nil
	}
	var missing fiscal.Problems
	if taxpayer.Address == "" {
		missing = append(missing, fiscal.Problem{
			Field: "taxpayer", Code: "taxpayer.profile_incomplete",
			Message: "the taxpayer has no address",
		})
	}
	return append(missing,
		fiscal.Problem{
			Field: "certificate", Code: "certificate.missing",
			Message: fmt.Sprintf("the taxpayer has no certificate in %s", env),
		},
		fiscal.Problem{
			Field: "sequence", Code: "sequence.missing",
			Message: fmt.Sprintf("the taxpayer has no authorised numbers of type %s in %s", t, env),
		})
}

// Birth queues an invoice.
func (Live) Birth(inv *fiscal.Invoice, _ Scenario) Birth {
	return Birth{Status: fiscal.Queued, Messages: inv.Warnings, Cause: "registered", Plan: "live", Stage: "issue"}
}

// Step has nothing to do: no invoice passes Ready.
func (Live) Step(_ context.Context, w Work) (Step, error) {
	return Step{}, errors.New("pipeline: no stage " + w.Job.Stage)
}

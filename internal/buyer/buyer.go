// Package buyer takes in the commercial responses (ACECF) of buyers. It decides whose
// they are: a response counts as the buyer's only when its signer is known to act for the
// buyer. It decides which response stands, and limits how many are kept.
package buyer

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/reply"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// Options configure Responses. Store, Env, Now and Log are required.
type Options struct {
	Store *store.Store
	Env   fiscal.Environment
	Now   func() time.Time
	Log   *slog.Logger
	// Publish, if set, is called after a commit with the invoice after it, and whether
	// the commit added events.
	Publish func(after store.Invoice, notified bool)
	// OnResponse, if set, is called with the outcome of every response, for metrics. It
	// must not block.
	OnResponse func(Outcome)
}

// Responses takes in commercial responses. It is safe for concurrent use.
type Responses struct {
	store      *store.Store
	env        fiscal.Environment
	now        func() time.Time
	log        *slog.Logger
	publish    func(after store.Invoice, notified bool)
	onResponse func(Outcome)

	mu   sync.Mutex
	full map[string]bool // documents whose limit was logged
}

// New returns a Responses. It fails when a required option is missing.
func New(o Options) (*Responses, error) {
	if o.Store == nil || o.Env == "" || o.Now == nil || o.Log == nil {
		return nil, errors.New("buyer: Options are incomplete")
	}
	if o.Publish == nil {
		o.Publish = func(store.Invoice, bool) {}
	}
	if o.OnResponse == nil {
		o.OnResponse = func(Outcome) {}
	}
	return &Responses{
		store: o.Store, env: o.Env, now: o.Now, log: o.Log, publish: o.Publish, onResponse: o.OnResponse,
		full: make(map[string]bool),
	}, nil
}

// Commercial takes in a verified response to a document of any taxpayer of the
// environment. It fails with reply.ErrNoDocument or reply.ErrMismatch when it is about
// none of ours, and with reply.ErrTooMany when the document has enough responses.
func (b *Responses) Commercial(ctx context.Context, r reply.Response) error {
	issued, err := b.store.IssuedUnder(ctx, b.env, r.IssuerRNC, r.ENCF)
	if errors.Is(err, store.ErrNotFound) {
		return reply.ErrNoDocument
	}
	if err != nil {
		return err
	}
	return b.update(ctx, func(tx *store.Tx) (store.Invoice, bool, error) { return b.Apply(ctx, tx, issued, r) })
}

// update runs a transaction and publishes its result.
func (b *Responses) update(ctx context.Context, write func(*store.Tx) (store.Invoice, bool, error)) (err error) {
	var after store.Invoice
	var notified bool
	err = store.RetryInvoiceChanged(ctx, func() error {
		return b.store.Update(ctx, func(tx *store.Tx) (err error) {
			after, notified, err = write(tx)
			return err
		})
	})
	if err == nil {
		b.publish(after, notified)
	}
	return err
}

// confirmedPage is how many responses ApplyConfirmed reads at a time.
const confirmedPage = 100

// ApplyConfirmed applies the kept responses whose signer has become known, and returns
// how many they were. It works while other processes do the same.
func (b *Responses) ApplyConfirmed(ctx context.Context) (applied int, err error) {
	for {
		page, err := b.store.ConfirmedResponses(ctx, b.env, confirmedPage)
		if err != nil || len(page) == 0 {
			return applied, err
		}
		for _, u := range page {
			if err := b.applyConfirmed(ctx, u); err != nil {
				return applied, err
			}
			applied++
		}
	}
}

func (b *Responses) applyConfirmed(ctx context.Context, u store.UnconfirmedResponse) error {
	return b.update(ctx, func(tx *store.Tx) (after store.Invoice, notified bool, err error) {
		taken, err := tx.TakeUnconfirmedResponse(ctx, u)
		if err != nil || !taken {
			return after, false, err
		}
		issued, err := tx.IssuedDocument(ctx, u.Scope, u.DocumentID)
		if err != nil {
			return after, false, err
		}
		d, err := b.read(ctx, tx, issued)
		if err != nil {
			return after, false, err
		}
		after, notified, err = b.take(ctx, tx, d, statement{u.Accepted, u.Reason, u.Signer, u.XML})
		if errors.Is(err, reply.ErrTooMany) {
			return d.invoice, false, nil // it is dropped: the document has enough responses of known signers
		}
		return after, notified, err
	})
}

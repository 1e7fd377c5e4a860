package inbox

import (
	"context"
	"errors"

	"github.com/fiscalhub/fiscalhub/internal/reply"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// Commercial takes in a verified response to a document of any taxpayer of the
// environment. It fails with reply.ErrNoDocument or reply.ErrMismatch when it is about
// none of ours, and with reply.ErrTooMany when the document has enough responses.
func (b *Inbox) Commercial(ctx context.Context, r reply.Response) error {
	issued, err := b.o.Store.IssuedUnder(ctx, b.o.Env, r.IssuerRNC, r.ENCF)
	if errors.Is(err, store.ErrNotFound) {
		return reply.ErrNoDocument
	}
	if err != nil {
		return err
	}
	return b.update(ctx, func(tx *store.Tx) (store.Invoice, bool, error) { return b.respond(ctx, tx, issued, r) })
}

// confirmedPage is how many responses ApplyConfirmed reads at a time.
const confirmedPage = 100

// ApplyConfirmed applies the kept responses whose signer has become known, and returns
// how many they were. It works while other processes do the same.
func (b *Inbox) ApplyConfirmed(ctx context.Context) (applied int, err error) {
	for {
		page, err := b.o.Store.ConfirmedResponses(ctx, b.o.Env, confirmedPage)
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

func (b *Inbox) applyConfirmed(ctx context.Context, u store.UnconfirmedResponse) error {
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

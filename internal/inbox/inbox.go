// Package inbox takes in what others send us about our documents: buyers' acknowledgements
// of receipt (ARECF) and commercial responses (ACECF), which buyers send to our receiver or
// sources pass on. A commercial response counts as the buyer's only when its signer is known
// to act for the buyer. Messages about documents that are not known yet are parked.
package inbox

import (
	"context"
	"crypto/x509"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/pipeline"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// Options configure an Inbox. Store, Env, Now and Log are required.
type Options struct {
	Store *store.Store
	Env   fiscal.Environment
	Now   func() time.Time
	Log   *slog.Logger
	// Settler decides where an acknowledgement puts a document. Receive and ApplyParked
	// need it.
	Settler pipeline.Settler
	// Roots are the certificates that the signature of a message must chain to. Without
	// them no message is believed.
	Roots *x509.CertPool
	// Publish, if set, is called after a commit with the invoice after it, and whether
	// the commit added events.
	Publish func(after store.Invoice, notified bool)
	// OnResponse, if set, is called with the outcome of every commercial response, for
	// metrics. It must not block.
	OnResponse func(ResponseOutcome)
}

// Inbox takes in messages. It is safe for concurrent use.
type Inbox struct {
	o    Options
	mu   sync.Mutex
	full map[string]bool // documents whose limit of responses was logged
}

// New returns an inbox. It fails when a required option is missing.
func New(o Options) (*Inbox, error) {
	if o.Store == nil || o.Env == "" || o.Now == nil || o.Log == nil {
		return nil, errors.New("inbox: Options are incomplete")
	}
	if o.Publish == nil {
		o.Publish = func(store.Invoice, bool) {}
	}
	if o.OnResponse == nil {
		o.OnResponse = func(ResponseOutcome) {}
	}
	return &Inbox{
		o: o, full: make(map[string]bool),
	}, nil
}

// update changes an invoice in a transaction and publishes it. It tries again for as long
// as others change the invoice meanwhile.
func (b *Inbox) update(ctx context.Context, write func(*store.Tx) (store.Invoice, bool, error)) (err error) {
	var after store.Invoice
	var notified bool
	err = store.RetryInvoiceChanged(ctx, func() error {
		return b.o.Store.Update(ctx, func(tx *store.Tx) (err error) {
			after, notified, err = write(tx)
			return err
		})
	})
	if err == nil {
		b.o.Publish(after, notified)
	}
	return err
}

// hasBuyer reports whether a document has a buyer who may answer: it is a fiscal credit
// invoice with an RNC.
func hasBuyer(issued store.Issued) bool {
	encf, err := fiscal.ParseENCF(issued.ENCF)
	return err == nil && encf.Type() == fiscal.FiscalCredit && issued.BuyerRNC != ""
}

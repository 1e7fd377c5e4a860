package pipeline

import (
	"crypto/sha256"
	"errors"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/strictjson"
)

// NewCommand validates an invoice and returns the command that registers it, without
// the taxpayer and the key. When the invoice is not valid, the error is fiscal.Problems,
// and the command has only what identifies the request: the pipeline may have registered
// it before.
func NewCommand(raw []byte, document *strictjson.Document, scenario Scenario) (Command, error) {
	canonical := document.Canonical()
	if document.Truncated() {
		// The canonical form is that of another request. No registered request
		// has this one, which is not canonical.
		canonical = append([]byte{' '}, raw...)
	}
	sum := sha256.Sum256(raw)
	c := Command{Intent: Intent{Fingerprint: fingerprint(canonical, scenario), RawDigest: sum[:]}}
	inv, err := fiscal.New(fiscal.DecodeRequest(document))
	if err != nil {
		return c, err
	}
	c.Invoice, c.Request, c.Scenario = inv, canonical, scenario
	return c, nil
}

// fingerprint returns a hash of the meaning of a request. The scenario is part
// of it, after a zero byte, which JSON text cannot contain.
func fingerprint(canonical []byte, s Scenario) []byte {
	h := sha256.New()
	_, _ = h.Write(canonical) // a hash never fails
	if s != "" {
		_, _ = h.Write([]byte("\x00" + string(s)))
	}
	return h.Sum(nil)
}

// MayBeReplay reports whether the idempotency key may be known although Register or
// NewCommand returned err. That is so when a rule refused the invoice, because the rule
// may have been different before, and when the database takes no writes. It is not so
// when the outcome of a commit is unknown: a retry of the client finds out.
func MayBeReplay(err error) bool {
	var (
		problems fiscal.Problems
		notReady *NotReadyError
	)
	return errors.As(err, &problems) || errors.As(err, &notReady) ||
		(errors.Is(err, store.ErrUnavailable) && !errors.Is(err, store.ErrOutcomeUnknown))
}

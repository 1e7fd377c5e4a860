package pipeline

import (
	"crypto/sha256"
	"sync"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/strictjson"
)

// digestApart is the size in bytes from which on another goroutine computes the digests of
// a request while this one validates it. The digests of a thousand lines take as long as
// their validation.
const digestApart = 64 << 10

// NewCommand validates an invoice and returns the command that registers it, without
// the taxpayer and the key. When the invoice is not valid, the error is fiscal.Problems,
// and the command has only what identifies the request: the pipeline may have registered
// it before. Register then expects the error as the refusal of the command.
func NewCommand(raw []byte, document *strictjson.Document, scenario Scenario) (Command, error) {
	var (
		raw256 [sha256.Size]byte
		c      Command
		apart  sync.WaitGroup
	)
	digest := func(compute func()) { compute() }
	if len(raw) >= digestApart {
		digest = apart.Go
	}
	digest(func() { raw256 = sha256.Sum256(raw) })
	canonical := document.Canonical()
	if document.Truncated() {
		// The canonical form is that of another request. No registered request
		// has this one, which is not canonical.
		canonical = append([]byte{' '}, raw...)
	}
	digest(func() { c.Fingerprint = fingerprint(canonical, scenario) })
	inv, err := fiscal.New(fiscal.DecodeRequest(document))
	apart.Wait()
	c.RawDigest = raw256[:]
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

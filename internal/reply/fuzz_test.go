package reply_test

import (
	"errors"
	"regexp"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/fiscalhub/fiscalhub/internal/reply"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

var (
	rncForm  = regexp.MustCompile(`^([0-9]{9}|[0-9]{11})$`)
	encfForm = regexp.MustCompile(`^E[0-9]{12}$`)
)

// FuzzReadResponse checks that every input is read or refused with one kind of
// error, and that a response that is read has valid values.
func FuzzReadResponse(f *testing.F) {
	f.Add([]byte(responseXML))
	f.Add([]byte(sign(f, peer().Identity, responseXML)))
	f.Add([]byte(edit(f, responseXML, rejected("Precio")...)))
	f.Add([]byte(edit(f, responseXML, "4425.50", "0")))
	f.Add([]byte(receiptXML))
	f.Add([]byte(invoiceXML))
	now := time.Now()
	f.Fuzz(func(t *testing.T, raw []byte) {
		r, err := reply.ReadResponse(raw, peer().CA.Pool(), now)
		check(t, r, err)
		// Most changes of a signed document fail at the signature, so the
		// reader is also called without it.
		if d, err := xmlsig.Parse(raw, xmlsig.SmallLimits()); err == nil {
			r, err := reply.ReadUnsigned(d)
			check(t, r, err)
		}
	})
}

func check(t *testing.T, r reply.Response, err error) {
	t.Helper()
	if err != nil {
		kinds := 0
		for _, kind := range []error{reply.ErrMalformed, reply.ErrSignature, reply.ErrUntrusted} {
			if errors.Is(err, kind) {
				kinds++
			}
		}
		if kinds != 1 {
			t.Fatalf("%d kinds: %v", kinds, err)
		}
		return
	}
	if !rncForm.MatchString(r.IssuerRNC) || !rncForm.MatchString(r.BuyerRNC) || !encfForm.MatchString(r.ENCF) ||
		r.IssueDate.IsZero() || r.At.IsZero() || r.Total.IsNeg() || r.Total.PrecUint() > 2 || len(r.Total.StringFixed(2)) > 19 ||
		r.Accepted && r.Reason != "" || utf8.RuneCountInString(r.Reason) > 250 {
		t.Fatalf("read %+v", r)
	}
}

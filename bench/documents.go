package main

import (
	"bytes"
	"context"
	"crypto"
	"crypto/sha256"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"syscall"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/ecf"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/printed"
	"github.com/fiscalhub/fiscalhub/internal/strictjson"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig/xmlsigtest"
)

// documentRounds is how many times figure and baseline are measured in turn, so that
// a slow moment of the machine affects both.
const documentRounds = 25

// documents compares building and signing a document with the RSA signature alone. It
// also measures verification, the format check and the printed page. All on one
// core.
func (b *bench) documents(_ context.Context) error {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // as the service
	leaf, err := xmlsigtest.New(xmlsigtest.Options{})
	if err != nil {
		return err
	}
	digest := sha256.Sum256([]byte("baseline"))
	raw := func() error {
		_, err := leaf.Key.Sign(nil, digest[:], crypto.SHA256)
		return err
	}
	for _, size := range []struct {
		name string
		body []byte
		goal string
	}{
		{"1 line", mixedBody(1), ""},
		{"10 lines", mixedBody(10), "≥ 0.9"},
		{"100 lines", mixedBody(100), ""},
		{"1000 lines", mixedBody(1000), "≥ 0.6"},
		{"1000 long lines", invoiceBody("bench", 1000), ""},
	} {
		b.say("documents of %s", size.name)
		if err := b.document(leaf.Identity, raw, size.name, size.body, size.goal); err != nil {
			return fmt.Errorf("%s: %w", size.name, err)
		}
	}
	return nil
}

func (b *bench) document(id *xmlsig.Identity, raw func() error, name string, body []byte, goal string) error {
	newDraft, err := drafts(ecf.Issuer{RNC: "199000013", LegalName: "Distribuidora Palma Clara, SRL", Address: "Calle Los Framboyanes No. 12", IncomeType: "01"}, body)
	if err != nil {
		return err
	}
	var (
		draft    *ecf.Draft
		document *ecf.Document
		xml      []byte
		code     ecf.SecurityCode
		verified *xmlsig.Verified
		page     []byte
	)
	sign := func() (err error) {
		if draft, err = newDraft(); err != nil {
			return err
		}
		xml, code, err = draft.Sign(id)
		return err
	}
	verify := func() (err error) {
		verified, err = xmlsig.Verify(xml, xmlsig.InvoiceLimits())
		return err
	}
	read := func() (err error) {
		document, _, err = ecf.Read(verified)
		return err
	}
	check := func() error { return draft.Check() }
	render := func() error {
		stamp, err := document.Stamp(code, ecf.ProductionAuthority)
		if err != nil {
			return err
		}
		page, err = printed.Page{Document: document, Code: code, Stamp: stamp}.Render(printed.Letter)
		return err
	}
	// What a signature cannot avoid: RSA, and the digest of the bytes.
	withDigest := func() error {
		sha256.Sum256(xml)
		return raw()
	}
	took, err := rounds(20, raw, sign, withDigest)
	if err != nil {
		return err
	}
	allocs, size, err := allocations(sign)
	if err != nil {
		return err
	}
	b.row(fmt.Sprintf("documents signed/s, %s, %d KB", name, len(xml)/1000), perSecond(took[1]), perSecond(took[0]), float64(took[0])/float64(took[1]), goal, "RSA-2048 signatures/s alone")
	b.row("  the same", perSecond(took[1]), perSecond(took[2]), float64(took[2])/float64(took[1]), "", "RSA-2048 and SHA-256 of the same bytes")
	b.fact("  allocations for one", fmt.Sprintf("%d, %d KB", allocs, size/1000), "")
	if took, err = rounds(1, verify, check, read, render); err != nil {
		return err
	}
	b.fact("  verified in", milliseconds(took[0]), "")
	b.fact("  format checked in", milliseconds(took[1]), "")
	pages := countPages(page)
	b.fact("  pages printed/s", fmt.Sprintf("%.0f (%d pages in %s, %d KB)", float64(pages)/took[3].Seconds(), pages, milliseconds(took[3]), len(page)/1000), "")
	return nil
}

// drafts returns a function that makes the draft of the invoice of a request.
func drafts(issuer ecf.Issuer, body []byte) (func() (*ecf.Draft, error), error) {
	parsed, err := strictjson.Parse(body)
	if err != nil {
		return nil, err
	}
	inv, err := fiscal.New(fiscal.DecodeRequest(parsed))
	if err != nil {
		return nil, err
	}
	encf, err := fiscal.NewENCF(fiscal.FiscalCredit, 1)
	return func() (*ecf.Draft, error) {
		return ecf.New(issuer, ecf.Number{ENCF: encf, Expires: inv.IssueDate}, inv, time.Now())
	}, err
}

// rounds runs functions in turn, each batch times, and returns the processor time of one
// run of each: the median of the rounds, so that a single slow round does not count. Other
// programs of the machine do not change the processor time much.
func rounds(batch int, fns ...func() error) ([]time.Duration, error) {
	turns := make([][]time.Duration, len(fns))
	for range documentRounds {
		for i, fn := range fns {
			start, err := processorTime()
			if err != nil {
				return nil, err
			}
			for range batch {
				if err := fn(); err != nil {
					return nil, err
				}
			}
			end, err := processorTime()
			if err != nil {
				return nil, err
			}
			turns[i] = append(turns[i], (end-start)/time.Duration(batch))
		}
	}
	taken := make([]time.Duration, len(fns))
	for i := range turns {
		slices.Sort(turns[i])
		taken[i] = turns[i][documentRounds/2]
	}
	return taken, nil
}

// processorTime returns the processor time that this process has used.
func processorTime() (time.Duration, error) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, err
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), nil
}

// allocations returns the allocations of one run: their count and bytes.
func allocations(fn func() error) (count, bytes uint64, err error) {
	const runs = 20
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range runs {
		if err := fn(); err != nil {
			return 0, 0, err
		}
	}
	runtime.ReadMemStats(&after)
	return (after.Mallocs - before.Mallocs) / runs, (after.TotalAlloc - before.TotalAlloc) / runs, nil
}

func perSecond(d time.Duration) string { return rateText(float64(time.Second) / float64(d)) }

// countPages counts the page objects of a PDF.
func countPages(pdf []byte) int { return bytes.Count(pdf, []byte("/Type /Page\n")) }

// signingRate returns how many documents of ten lines one core signs per second.
func signingRate() (float64, error) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // as the service
	leaf, err := xmlsigtest.New(xmlsigtest.Options{})
	if err != nil {
		return 0, err
	}
	newDraft, err := drafts(ecf.Synthetic(), mixedBody(10))
	if err != nil {
		return 0, err
	}
	took, err := rounds(20, func() error {
		draft, err := newDraft()
		if err != nil {
			return err
		}
		_, _, err = draft.Sign(leaf.Identity)
		return err
	})
	if err != nil {
		return 0, err
	}
	return float64(time.Second) / float64(took[0]), nil
}

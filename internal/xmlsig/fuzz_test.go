package xmlsig_test

import (
	"bytes"
	"testing"

	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig/xmlsigtest"
)

// fuzzLimits keep one execution short.
func fuzzLimits() xmlsig.Limits { return xmlsig.Limits{Bytes: 16 << 10, Nodes: 500, Depth: 16} }

// FuzzParse checks that our canonical forms are those of helium, and that a
// canonical form is parsed to the same tree.
func FuzzParse(f *testing.F) {
	f.Add([]byte(seed))
	f.Add([]byte("<a>\r\n<b>x &amp; y&#13;</b><c/>\t<d> </d></a>"))
	f.Add([]byte(`<a xmlns="urn:x" xmlns:p="urn:y" p:k="1" k='2'><p:b xmlns=""><c xmlns:p="urn:z" p:d="&#9;"/></p:b></a>`))
	for _, c := range changes {
		before, _, after := body(c.change(written()))
		f.Add([]byte(before + after))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		d, err := xmlsig.Parse(raw, fuzzLimits())
		if err != nil || contains(d.Root(), "Signature") {
			return
		}
		for exclusive, ours := range map[bool][]byte{false: d.Canonical(true), true: d.CanonicalExclusive()} {
			theirs, err := heliumForm(t.Context(), lineFeeds(raw), exclusive, nil)
			if err != nil {
				t.Fatalf("helium refuses what we accept: %v", err)
			}
			if !bytes.Equal(theirs, ours) {
				t.Fatalf("canonical form\n%q\nhelium's\n%q", ours, theirs)
			}
		}
		for _, blanks := range []bool{true, false} {
			again, err := xmlsig.Parse(d.Canonical(blanks), xmlsig.InvoiceLimits())
			if err != nil {
				t.Fatal(err)
			}
			if got, want := dump(again.Root()), dump(d.Root()); got != want {
				t.Fatalf("read\n%s\nand again\n%s", want, got)
			}
			if !bytes.Equal(again.Canonical(true), d.Canonical(blanks)) {
				t.Fatal("the canonical form of the canonical form differs")
			}
		}
	})
}

func contains(e xmlsig.Element, name string) bool {
	for c := range e.Children() {
		if contains(c, name) {
			return true
		}
	}
	return e.Name() == name
}

// FuzzVerify checks that every document that verifies is one of those that were
// signed. The processes of a fuzzer have different keys, and sign the same
// documents.
func FuzzVerify(f *testing.F) {
	known := map[string]bool{}
	add := func(document string) {
		f.Add([]byte(document))
		if v, err := xmlsig.Verify([]byte(document), fuzzLimits()); err == nil {
			known[dump(v.Root())] = true
		}
	}
	for _, c := range changes {
		add(c.change(written()))
	}
	for _, c := range forgeries {
		if c.err == nil {
			forgery := newForgery()
			c.forge(nil, forgery)
			add(forgery.document(f))
		}
	}
	for _, form := range xmlsigtest.Forms() {
		switch form.Name { // a few, because every process of a fuzzer signs them
		case "attributes on the root", "exclusive with a prefix list", "everything":
			add(string(form.Sign(f, signer(), foreignXML)))
		}
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		v, err := xmlsig.Verify(raw, fuzzLimits())
		if err != nil {
			return
		}
		if !known[dump(v.Root())] {
			t.Fatalf("verified, and never signed:\n%s", dump(v.Root()))
		}
		document := raw
		if v.Indented {
			document = strip(t, raw)
		}
		if bytes.Contains(document, []byte("X509IssuerSerial")) {
			return // helium does not read an empty one
		}
		if err := heliumVerify(t.Context(), lineFeeds(document), v); err != nil {
			t.Fatalf("we accept what helium refuses: %v", err)
		}
	})
}

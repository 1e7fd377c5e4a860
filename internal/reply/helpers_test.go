package reply_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/needtest"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig/xmlsigtest"
)

const (
	issuer = "131880681"
	buyer  = "00113918205"
	encf   = "E310000000058"
)

// declaration starts every document that we sign. What is kept does not have it.
const declaration = `<?xml version="1.0" encoding="utf-8"?>`

// peer is a buyer with a certificate of the trusted authority.
var peer = sync.OnceValue(func() *xmlsigtest.Leaf {
	leaf, err := xmlsigtest.New(xmlsigtest.Options{})
	if err != nil {
		panic(err)
	}
	return leaf
})

func sign(t testing.TB, id *xmlsig.Identity, document string) string {
	t.Helper()
	d, err := xmlsig.Parse([]byte(document), xmlsig.InvoiceLimits())
	if err != nil {
		t.Fatal(err)
	}
	signed, err := id.SignDocument(d)
	if err != nil {
		t.Fatal(err)
	}
	return string(signed)
}

// edit replaces pairs of old and new text. Each old text must occur.
func edit(t testing.TB, text string, changes ...string) string {
	t.Helper()
	for i := 0; i < len(changes); i += 2 {
		if !strings.Contains(text, changes[i]) {
			t.Fatalf("there is no %q to change", changes[i])
		}
		text = strings.Replace(text, changes[i], changes[i+1], 1)
	}
	return text
}

// A signing is one way in which a document is signed, or not signed, and the
// error with which it is then refused.
type signing struct {
	name    string
	sign    func(t *testing.T, document string) string
	noRoots bool // no root is trusted
	refused error
}

func expired(t *testing.T) *xmlsig.Identity {
	return xmlsigtest.Must(t, xmlsigtest.Options{CA: peer().CA, NotAfter: time.Now().Add(-time.Minute)}).Identity
}

func stranger(t *testing.T) *xmlsig.Identity {
	ca, err := xmlsigtest.NewCA("Otra Autoridad")
	if err != nil {
		t.Fatal(err)
	}
	return xmlsigtest.Must(t, xmlsigtest.Options{CA: ca}).Identity
}

// validates validates a document with one of the authority's schemas. They are
// not part of the project: FISCALHUB_XSD names the folder that has them, and its
// subfolder patched has versions that libxml2 can read.
func validates(t *testing.T, schema, document string) error {
	t.Helper()
	dir := needtest.Schemas(t)
	path := filepath.Join(dir, "patched", schema)
	if _, err := os.Stat(path); err != nil {
		path = filepath.Join(dir, schema)
	}
	cmd := exec.CommandContext(t.Context(), needtest.Program(t, "xmllint"), "--noout", "--nonet", "--schema", path, "-")
	cmd.Stdin = strings.NewReader(document)
	return cmd.Run()
}

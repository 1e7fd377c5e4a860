package main

import (
	"bytes"
	"crypto/x509"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig/xmlsigtest"
)

// scriptP12 makes NAME.p12, NAME.key with its private key in PKCS#8, and
// NAME.password.
func scriptP12(ts *testscript.TestScript, _ bool, args []string) {
	name, kind := args[0], args[1]
	now, password := time.Now(), "contraseña de "+name+" 7c1f"
	foreign, err := xmlsigtest.NewCA("Otra Autoridad")
	ts.Check(err)
	options, ok := map[string]xmlsigtest.Options{
		"good":     {},
		"foreign":  {CA: foreign},
		"soon":     {NotAfter: now.Add(30*24*time.Hour + time.Hour)},
		"expired":  {NotBefore: now.AddDate(-2, 0, 0), NotAfter: now.AddDate(-1, 0, 0)},
		"future":   {NotBefore: now.AddDate(1, 0, 0)},
		"unnamed":  {Subject: "Nadie"},
		"weak":     {Bits: 1024},
		"mismatch": {Bits: 3072},
	}[kind]
	if !ok {
		ts.Fatalf("there is no kind of certificate %s", kind)
	}
	leaf, err := xmlsigtest.New(options)
	ts.Check(err)
	if kind == "mismatch" {
		other, err := xmlsigtest.New(xmlsigtest.Options{})
		ts.Check(err)
		leaf.Key = other.Key
	}
	file, err := leaf.P12(password)
	ts.Check(err)
	key, err := x509.MarshalPKCS8PrivateKey(leaf.Key)
	ts.Check(err)
	for suffix, content := range map[string][]byte{".p12": file, ".key": key, ".password": []byte(password + "\n"), ".roots": leaf.CA.PEM()} {
		ts.Check(os.WriteFile(ts.MkAbs(name+suffix), content, 0o600))
	}
}

// scriptHidden fails when a file of a folder contains the private key or the
// password of a certificate that scriptP12 made.
func scriptHidden(ts *testscript.TestScript, _ bool, args []string) {
	dir, name := args[0], args[1]
	key := []byte(ts.ReadFile(name + ".key"))
	secrets := [][]byte{[]byte(strings.TrimSpace(ts.ReadFile(name + ".password")))}
	// The file begins with the public key, which is no secret. The private part is
	// searched in pieces, because a database may split it over pages.
	const private, piece = 330, 32
	for at := private; at+piece <= len(key); at += piece {
		secrets = append(secrets, key[at:at+piece])
	}
	ts.Check(filepath.WalkDir(ts.MkAbs(dir), func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, secret := range secrets {
			if bytes.Contains(content, secret) {
				ts.Fatalf("%s holds a secret of %s in the clear", path, name)
			}
		}
		return nil
	}))
}

func TestPasswordIsTheFirstLine(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"secret":             "secret",
		"secret\n":           "secret",
		"secret\r\n":         "secret",
		" a b \n":            " a b ",
		"secret\nnot this":   "secret",
		"":                   "",
		"\n":                 "",
		"con ñ y \t tab\r\n": "con ñ y \t tab",
		"two\r\r\n":          "two\r",
	} {
		path := filepath.Join(t.TempDir(), "password")
		must(t, os.WriteFile(path, []byte(text), 0o600))
		if got, err := readPassword(path); err != nil || got != want {
			t.Errorf("%q is read as %q, %v; want %q", text, got, err, want)
		}
	}
	large := filepath.Join(t.TempDir(), "large")
	must(t, os.WriteFile(large, make([]byte, maxPasswordFile+1), 0o600))
	if _, err := readPassword(large); err == nil {
		t.Error("readPassword read a file over the limit")
	}
}

// Why a file is refused is all in the language of the reader.
func TestRefusedP12IsExplainedInSpanish(t *testing.T) {
	t.Parallel()
	for _, kind := range []error{xmlsig.ErrPassword, xmlsig.ErrNotP12, xmlsig.ErrNoKey, xmlsig.ErrKeyMismatch, xmlsig.ErrWeakKey} {
		err := explainP12(fmt.Errorf("%w: the cause", kind), "file.p12", "password")
		why := strings.TrimPrefix(kind.Error(), "xmlsig: ")
		if got := lang.ErrorText(err, lang.English); !strings.HasPrefix(got, "file.p12: "+why+": the cause: ") {
			t.Errorf("%v in English: %s", kind, got)
		}
		if got := lang.ErrorText(err, lang.Spanish); strings.Contains(got, why) || strings.Contains(got, "the cause") {
			t.Errorf("%v in Spanish: %s", kind, got)
		}
	}
}

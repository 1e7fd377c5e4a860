package xmlsigtest

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fiscalhub/fiscalhub/internal/needtest"
)

// Xmlsec verifies a document with xmlsec1, which shares no code with xmlsig. It
// returns an error when the signature does not match or the authority has not
// issued the certificate. When xmlsec1 is not installed, the test is skipped, and
// fails when CI is set. The arguments are added to the command.
func Xmlsec(t testing.TB, ca *CA, document []byte, args ...string) error {
	t.Helper()
	roots := filepath.Join(t.TempDir(), "roots.pem")
	if err := os.WriteFile(roots, ca.PEM(), 0o600); err != nil {
		t.Fatal(err)
	}
	args = append([]string{"--verify", "--enabled-key-data", "x509", "--trusted-pem", roots}, args...)
	_, err := xmlsec(t, "", document, args...)
	return err
}

// XmlsecSign signs a document with xmlsec1. The document has the template of its
// signature. The key comes with the certificate of the leaf and the certificates
// of its intermediate authorities. The arguments are added to the command.
func XmlsecSign(t testing.TB, leaf *Leaf, template string, args ...string) []byte {
	t.Helper()
	key, err := x509.MarshalPKCS8PrivateKey(leaf.Key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	var files []string
	add := func(content []byte) {
		name := fmt.Sprintf("%d.pem", len(files)) // without the folder, which may have a comma
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
		files = append(files, name)
	}
	add(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}))
	add(leaf.PEM())
	for ca := leaf.CA; ca.issuer != nil; ca = ca.issuer {
		add(ca.PEM())
	}
	args = append([]string{"--sign", "--privkey-pem", strings.Join(files, ",")}, args...)
	document, err := xmlsec(t, dir, []byte(template), args...)
	if err != nil {
		t.Fatalf("%v\n%s", err, template)
	}
	return document
}

// xmlsec runs xmlsec1 in a folder with a document as its input.
func xmlsec(t testing.TB, dir string, document []byte, args ...string) ([]byte, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), needtest.Program(t, "xmlsec1"), append(args, "-")...)
	cmd.Dir, cmd.Stdin = dir, bytes.NewReader(document)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("xmlsec1: %w\n%s", err, stderr.Bytes())
	}
	return out, nil
}

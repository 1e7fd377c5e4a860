package xmlsigtest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Xmlsec verifies a document with xmlsec1, which shares no code with xmlsig. It
// returns an error when the signature does not match or the authority has not
// issued the certificate. When xmlsec1 is not installed, the test is skipped, and
// fails when CI is set.
func Xmlsec(t testing.TB, ca *CA, document []byte) error {
	t.Helper()
	program, err := exec.LookPath("xmlsec1")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("xmlsec1 is not installed, and CI is set: %v", err)
		}
		t.Skipf("xmlsec1 is not installed: nothing independent judges signatures: %v", err)
	}
	roots := filepath.Join(t.TempDir(), "roots.pem")
	if err := os.WriteFile(roots, ca.PEM(), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, "--verify", "--enabled-key-data", "x509", "--trusted-pem", roots, "-")
	cmd.Stdin = bytes.NewReader(document)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("xmlsec1: %w\n%s", err, out)
	}
	return nil
}

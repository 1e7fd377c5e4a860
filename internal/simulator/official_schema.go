package simulator

import (
	"bytes"
	"cmp"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// validateOfficialSchema validates a document with the authority's schema and returns the
// first error, or "". It prefers the copies in the folder "patched", which libxml2 can read.
func (s *Simulator) validateOfficialSchema(ctx context.Context, x *examination) string {
	if s.officialSchemas == "" {
		return "The configuration asks for the official schema, but Options.Schemas is empty."
	}
	name := "ecf-" + x.facts.Type + ".xsd"
	if x.rfce {
		name = "rfce-32.xsd"
	}
	path := filepath.Join(s.officialSchemas, "patched", name)
	if _, err := os.Stat(path); err != nil {
		path = filepath.Join(s.officialSchemas, name)
	}
	// The document is validated even when the client has gone.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "xmllint", "--nonet", "--noout", "--schema", path, "-") //nolint:gosec // the structure has been checked, so the type is known
	cmd.Stdin = bytes.NewReader(x.raw)
	out, err := cmd.CombinedOutput()
	if err == nil {
		return ""
	}
	first, _, _ := strings.Cut(string(out), "\n")
	return cmp.Or(first, err.Error())
}

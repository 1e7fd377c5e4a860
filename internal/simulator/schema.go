package simulator

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// askSchema has the official schema judge a document, and returns its first
// complaint. Of a folder the patched copies, which libxml2 can read, come first.
func (s *Simulator) askSchema(ctx context.Context, x *examination) string {
	if s.schemas == "" {
		return "The official schema was asked for and no folder names it."
	}
	name := "ecf-" + x.facts.Type + ".xsd"
	if x.rfce {
		name = "rfce-32.xsd"
	}
	path := filepath.Join(s.schemas, "patched", name)
	if _, err := os.Stat(path); err != nil {
		path = filepath.Join(s.schemas, name)
	}
	// Who sent it may go; the document is judged all the same.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "xmllint", "--nonet", "--noout", "--schema", path, "-") //nolint:gosec // the type is one of the structure's
	cmd.Stdin = bytes.NewReader(x.raw)
	out, err := cmd.CombinedOutput()
	if err == nil {
		return ""
	}
	first, _, _ := strings.Cut(string(out), "\n")
	return or(first, err.Error())
}

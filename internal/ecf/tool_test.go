package ecf_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fiscalhub/fiscalhub/internal/needtest"
)

// validates validates files with one of the authority's schemas. The schemas are
// not part of the project: FISCALHUB_XSD names the folder that has them, and its
// subfolder patched has versions that libxml2 can read.
func validates(t *testing.T, schema string, files ...string) {
	t.Helper()
	dir := needtest.Schemas(t)
	path := filepath.Join(dir, "patched", schema+".xsd")
	if _, err := os.Stat(path); err != nil {
		path = filepath.Join(dir, schema+".xsd")
	}
	args := append([]string{"--noout", "--nonet", "--huge", "--schema", path}, files...)
	out, err := exec.CommandContext(t.Context(), needtest.Program(t, "xmllint"), args...).CombinedOutput()
	if valid := strings.Count(string(out), " validates\n"); err != nil || valid != len(files) {
		t.Errorf("%s: %d of %d documents validate: %v\n%.3000s", schema, valid, len(files), err, out)
	}
}

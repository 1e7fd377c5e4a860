package ecf_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// tool finds a program that judges our documents. When it is not installed, the
// test is skipped, and fails when CI is set.
func tool(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	switch {
	case err == nil:
		return path
	case os.Getenv("CI") != "":
		t.Fatalf("%s is missing: run scripts/setup", name)
	}
	t.Skipf("%s is missing: run scripts/setup", name)
	return ""
}

// validates validates files with one of the authority's schemas. The schemas are
// not part of the project: FISCALHUB_XSD names the folder that has them, and its
// subfolder patched has versions that libxml2 can read.
func validates(t *testing.T, schema string, files ...string) {
	t.Helper()
	dir := os.Getenv("FISCALHUB_XSD")
	if dir == "" {
		t.Skip("OUR OWN CHECKER JUDGES ALONE: set FISCALHUB_XSD to the folder of the authority's schemas")
	}
	path := filepath.Join(dir, "patched", schema+".xsd")
	if _, err := os.Stat(path); err != nil {
		path = filepath.Join(dir, schema+".xsd")
	}
	args := append([]string{"--noout", "--nonet", "--huge", "--schema", path}, files...)
	out, err := exec.CommandContext(t.Context(), tool(t, "xmllint"), args...).CombinedOutput()
	if valid := strings.Count(string(out), " validates\n"); err != nil || valid != len(files) {
		t.Errorf("%s: %d of %d documents validate: %v\n%.3000s", schema, valid, len(files), err, out)
	}
}

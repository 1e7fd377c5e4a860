// Package needtest skips tests on a machine that lacks what they need: a program, the
// authority's schemas, or a right of the system. The table in scripts/setup has the same
// names; it says what is left out without each of them, and how to get it.
package needtest

import (
	"os"
	"os/exec"
	"testing"
)

// Program returns the path of a program. Without it, it calls Missing.
func Program(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		Missing(t, name, err)
	}
	return path
}

// Schemas returns the folder of the authority's schemas, which are not part of the project.
// Without it, it calls LeftOut.
func Schemas(t testing.TB) string {
	t.Helper()
	folder := os.Getenv("FISCALHUB_XSD")
	if folder == "" {
		LeftOut(t, "schemas", "FISCALHUB_XSD is not set")
	}
	return folder
}

// Missing skips a test that needs something. With the environment variable CI the test fails.
func Missing(t testing.TB, name string, why any) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatalf("CI needs %s: %v; scripts/setup --missing says how to get it", name, why)
	}
	t.Skipf("LEFT OUT: %s: %v; scripts/setup --missing says how to get it", name, why)
}

// LeftOut skips a test of something that the project cannot install: what the system does not
// allow, what a registry has, or the authority's schemas. CI does not change that.
func LeftOut(t testing.TB, name string, why any) {
	t.Helper()
	t.Skipf("LEFT OUT: %s: %v", name, why)
}

package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/fiscalhub/fiscalhub/openapi"
)

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The types of the client are those of the OpenAPI document.
func TestTheTypesAreThoseOfTheDocument(t *testing.T) {
	t.Parallel()
	document, err := openapi.JSON()
	if err != nil {
		t.Fatal(err)
	}
	want, err := generate(document)
	if err != nil {
		t.Fatal(err)
	}
	if read(t, "src/api.ts") != want {
		t.Error("src/api.ts is stale: run make typescript-client")
	}
}

// Each operation has a method in the client.
func TestTheClientHasEveryOperation(t *testing.T) {
	t.Parallel()
	client := read(t, "src/client.ts")
	other := []string{"receiveInboundEvent", "getOpenApiDocument"} // not for integrators with an API key
	for _, m := range regexp.MustCompile(`(?m)^  (\w+): \{ method: `).FindAllStringSubmatch(read(t, "src/api.ts"), -1) {
		if !slices.Contains(other, m[1]) && !strings.Contains(client, "operations."+m[1]+",") {
			t.Errorf("the client does not use the operation %s", m[1])
		}
	}
}

// The JavaScript in dist was made from the sources as they are now. The file digests has the
// SHA-256 of all of them, so this needs no compiler.
func TestTheBuiltFilesAreThoseOfTheSources(t *testing.T) {
	t.Parallel()
	var want strings.Builder
	for _, pattern := range []string{"dist/*", "src/*"} {
		files, err := filepath.Glob("../" + pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(files), err)
		}
		for _, file := range files {
			name := strings.TrimPrefix(filepath.ToSlash(file), "../")
			fmt.Fprintf(&want, "%x  %s\n", sha256.Sum256([]byte(read(t, name))), name)
		}
	}
	if read(t, "digests") != want.String() {
		t.Error("clients/typescript/dist is stale: run make typescript-client")
	}
}

// The TypeScript compiler makes the files of dist. make typescript-client installs it; without
// it TestTheBuiltFilesAreThoseOfTheSources alone compares them.
func TestTheCompilerMakesTheBuiltFiles(t *testing.T) {
	t.Parallel()
	compiler := "../node_modules/typescript/bin/tsc"
	if _, err := os.Stat(compiler); err != nil {
		t.Skip("SKIPPED: the TypeScript compiler is not installed (make typescript-client): dist is not compiled again")
	}
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("SKIPPED: node is not installed: dist is not compiled again")
	}
	dir := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "node", compiler, "-p", "..", "--outDir", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	made, err := filepath.Glob(dir + "/*")
	if err != nil || len(made) == 0 {
		t.Fatalf("%d files, %v", len(made), err)
	}
	for _, file := range made {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if name := "dist/" + filepath.Base(file); string(text) != read(t, name) {
			t.Errorf("%s is not what the compiler makes: run make typescript-client", name)
		}
	}
}

// The lock file names versions and digests, and no registry.
func TestTheLockFileNamesNoRegistry(t *testing.T) {
	t.Parallel()
	lock := read(t, "package-lock.json")
	if strings.Contains(lock, "://") || strings.Contains(lock, `"resolved"`) {
		t.Error("package-lock.json has addresses; .npmrc has omit-lockfile-registry-resolved")
	}
}

// A schema that the generator does not know is an error, and not a wrong type.
func TestAnUnknownSchemaIsAnError(t *testing.T) {
	t.Parallel()
	for _, schema := range []string{`{}`, `{"type":"tuple"}`, `{"type":"array","items":{}}`, `{"type":"object","properties":{"a":{"format":"x"}}}`} {
		if text, err := generate([]byte(`{"components":{"schemas":{"A":` + schema + `}}}`)); err == nil {
			t.Errorf("%s became\n%s", schema, text)
		}
	}
}

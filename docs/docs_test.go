// Package docs holds the documentation. Its tests keep it true.
package docs

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/strictjson"
)

const module = "github.com/fiscalhub/fiscalhub/"

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// floors reads the table of packages: the floor of each package, "–" for those
// beside the floors, and what the package may import.
func floors(t *testing.T) (floor map[string]string, imports map[string][]string) {
	t.Helper()
	quoted := regexp.MustCompile("`([^`]+)`")
	floor, imports = map[string]string{}, map[string][]string{}
	for _, row := range regexp.MustCompile(`(?m)^\| [0-9–] \|.*$`).FindAllString(read(t, "architecture.md"), -1) {
		cells := strings.Split(row, "|")
		name := quoted.FindStringSubmatch(cells[2])[1]
		list := []string{}
		for _, m := range quoted.FindAllStringSubmatch(cells[4], -1) {
			list = append(list, m[1])
		}
		slices.Sort(list)
		floor[name], imports[name] = strings.TrimSpace(cells[1]), list
	}
	return floor, imports
}

// Every package imports of ours exactly what the table says, and every package is
// in the table. No arrow points up; within a floor only the pairs that are listed
// here; the compiler refuses circles.
func TestPackageTable(t *testing.T) {
	t.Parallel()
	floor, table := floors(t)
	list := exec.CommandContext(t.Context(), "go", "list", "-f", `{{.ImportPath}}{{range .Imports}} {{.}}{{end}}`, "./...", module+"client") // the client is a module of its own
	list.Dir = ".."
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	code := map[string][]string{}
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		name := strings.TrimPrefix(fields[0], module)
		if name == "docs" {
			continue // tests alone
		}
		imports := []string{}
		for _, f := range fields[1:] {
			if ours, ok := strings.CutPrefix(f, module); ok {
				imports = append(imports, ours)
			}
		}
		slices.Sort(imports)
		code[name] = imports
	}
	if diff := cmp.Diff(code, table); diff != "" {
		t.Errorf("architecture.md differs from the code (-code +table):\n%s", diff)
	}
	level := map[string]bool{ // on one floor, with the reason
		"internal/fiscal internal/reply":  true, // a reply speaks of the domain
		"internal/ecf internal/printed":   true, // a page is printed from a document
		"internal/access internal/notify": true, // access seals the secrets of endpoints

		"internal/atomicfile internal/seal": true, // key files are written whole

		"internal/lang internal/audit":      true, // their errors are messages for people
		"internal/lang internal/netguard":   true,
		"internal/lang internal/strictjson": true,
	}
	for from, list := range code {
		for _, to := range list {
			if floor[from] == "–" || floor[to] == "–" {
				continue
			}
			if pair := to + " " + from; floor[to] > floor[from] || floor[to] == floor[from] && !level[pair] {
				t.Errorf("%s on floor %s imports %s on floor %s", from, floor[from], to, floor[to])
			}
		}
	}
}

// The engine does not ask which plan it has.
func TestTheEngineDoesNotAskForItsPlan(t *testing.T) {
	t.Parallel()
	downcast := regexp.MustCompile(`[pP]lan\.\(\*?[\w.]+\)`)
	for _, name := range []string{"pipeline", "live"} {
		files, err := filepath.Glob("../internal/" + name + "/*.go")
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			if found := downcast.FindString(read(t, file)); found != "" {
				t.Errorf("%s has a downcast of the plan: %s", file, found)
			}
		}
		if len(files) == 0 {
			t.Errorf("internal/%s has no files", name)
		}
	}
}

// The request that the README shows is a valid invoice, and the answer below it
// has the members that it says.
func TestReadmeRequest(t *testing.T) {
	t.Parallel()
	readme := read(t, "../README.md")
	request := regexp.MustCompile(`(?s)-d '(\{.*?\n\})'`).FindStringSubmatch(readme)
	if request == nil {
		t.Fatal("the README shows no request")
	}
	document, err := strictjson.Parse([]byte(request[1]))
	if err != nil {
		t.Fatal(err)
	}
	inv, err := fiscal.New(fiscal.DecodeRequest(document))
	if err != nil {
		t.Fatalf("the README's request is refused: %v", err)
	}
	answer := regexp.MustCompile(`(?s)\n(\{"data".*?\}\})\n`).FindStringSubmatch(readme)
	if answer == nil {
		t.Fatal("the README shows no answer")
	}
	var shown struct {
		Data map[string]any `json:"data"`
	}
	if err := json.Unmarshal([]byte(answer[1]), &shown); err != nil {
		t.Fatal(err)
	}
	if got, want := shown.Data["external_id"], inv.ExternalID; got != want {
		t.Errorf("the answer is of %v, the request of %v", got, want)
	}
	want := []string{"created_at", "currency", "ecf_type", "external_id", "fiscal_document_id", "id", "issue_date", "status", "taxpayer_id", "totals", "updated_at"}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(shown.Data))); diff != "" {
		t.Errorf("members of the answer (-want +shown):\n%s", diff)
	}
}

// pages returns every page of the project, as paths from its root.
func pages(t *testing.T) []string {
	t.Helper()
	list := []string{"README.md", "README.es.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".md") {
			list = append(list, filepath.Join("docs", path))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// Links lead to files and headings that exist, and decisions are numbered without gaps.
func TestLinks(t *testing.T) {
	t.Parallel()
	for _, page := range pages(t) {
		for _, target := range targets(t, page) {
			path, anchor, _ := strings.Cut(target, "#")
			if strings.Contains(target, "://") {
				continue
			}
			if _, err := os.Stat(filepath.Join("..", path)); err != nil {
				t.Errorf("%s: %v", page, err)
			} else if anchor != "" && !slices.Contains(anchors(read(t, "../"+path)), anchor) {
				t.Errorf("%s links to %s: %s has no such heading", page, target, path)
			}
		}
	}
	decisions, err := filepath.Glob("decisions/[0-9]*.md")
	if err != nil {
		t.Fatal(err)
	}
	for i, page := range decisions {
		if want := fmt.Sprintf("%04d-", i+1); !strings.HasPrefix(filepath.Base(page), want) || !strings.HasPrefix(read(t, page), fmt.Sprintf("# %d. ", i+1)) {
			t.Errorf("decision %d: %s does not start with its number", i+1, page)
		}
	}
}

// The files and folders that the pages name exist. The changelog may name what is gone.
func TestPagesNameFilesThatExist(t *testing.T) {
	t.Parallel()
	path := regexp.MustCompile("`((?:bench|clients?|cmd|deploy|docs|examples|internal|openapi|scripts|systemtest|tools)/[\\w./-]+)`")
	for _, page := range pages(t) {
		if page == "CHANGELOG.md" {
			continue
		}
		for _, m := range path.FindAllStringSubmatch(read(t, "../"+page), -1) {
			if _, err := os.Stat(filepath.Join("..", m[1])); err != nil {
				t.Errorf("%s: %v", page, err)
			}
		}
	}
	_, table, _ := strings.Cut(read(t, "architecture.md"), "## Where to look")
	folder := "" // of a name without one
	for _, m := range regexp.MustCompile("`(internal/[\\w/]+/)?(\\w+\\.go)`").FindAllStringSubmatch(table, -1) {
		if m[1] != "" {
			folder = m[1]
		}
		if _, err := os.Stat(filepath.Join("..", folder, m[2])); err != nil {
			t.Errorf("architecture.md: %v", err)
		}
	}
}

// A reader gets from the README to every page with two links; to the Spanish pages from
// the Spanish README.
func TestEveryPageIsTwoLinksFromTheReadme(t *testing.T) {
	t.Parallel()
	near := func(start string) map[string]bool {
		near := map[string]bool{start: true}
		for range 2 {
			for _, page := range slices.Collect(maps.Keys(near)) {
				for _, target := range targets(t, page) {
					if path, _, _ := strings.Cut(target, "#"); strings.HasSuffix(path, ".md") && !strings.Contains(path, "://") {
						near[path] = true
					}
				}
			}
		}
		return near
	}
	english, spanish := near("README.md"), near("README.es.md")
	for _, page := range pages(t) {
		if !english[page] && (!spanish[page] || !strings.HasPrefix(page, "docs/es/")) {
			t.Errorf("%s is more than two links away from the README", page)
		}
	}
}

// The commands that the pages show are commands that exist.
func TestCommandsExist(t *testing.T) {
	t.Parallel()
	known := read(t, "../cmd/fiscalhub/main.go")
	for _, page := range commandPages() {
		for _, m := range regexp.MustCompile("(?m)(?:^|`)(?:bin/)?fiscalhub ([a-z]+)").FindAllStringSubmatch(read(t, page), -1) {
			if !regexp.MustCompile(`(?i)\b` + m[1] + `Cmd\b`).MatchString(known) {
				t.Errorf("%s shows fiscalhub %s, which does not exist", page, m[1])
			}
		}
	}
}

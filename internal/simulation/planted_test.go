package simulation

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// A planted bug is a patch that breaks a promise. Its hunks have no line numbers: the old
// lines must be in the file exactly once.
type planted struct {
	name, what string
	hunks      []hunk
}

type hunk struct{ file, before, after string }

func plantedBugs(t *testing.T) []planted {
	t.Helper()
	files, err := filepath.Glob("planted/*.patch")
	if err != nil {
		t.Fatal(err)
	}
	var all []planted
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, parsePatch(strings.TrimSuffix(filepath.Base(file), ".patch"), string(text)))
	}
	return all
}

// parsePatch reads a patch: its description, then for each file its hunks.
func parsePatch(name, text string) planted {
	p, file := planted{name: name}, ""
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case strings.HasPrefix(line, "--- a/"):
			file = strings.TrimPrefix(line, "--- a/")
		case strings.HasPrefix(line, "+++ b/"):
		case file == "":
			p.what = strings.TrimSpace(p.what + " " + line)
		case line == "@@":
			p.hunks = append(p.hunks, hunk{file: file})
		case line != "" && len(p.hunks) > 0:
			h := &p.hunks[len(p.hunks)-1]
			if line[0] != '+' {
				h.before += line[1:] + "\n"
			}
			if line[0] != '-' {
				h.after += line[1:] + "\n"
			}
		}
	}
	return p
}

// sources returns the files of the tree with the bug, by their path from the root.
func (p planted) sources() (map[string]string, error) {
	changed := map[string]string{}
	for _, h := range p.hunks {
		text, ok := changed[h.file]
		if !ok {
			content, err := os.ReadFile(filepath.Join("../..", h.file))
			if err != nil {
				return nil, err
			}
			text = string(content)
		}
		if n := strings.Count("\n"+text, "\n"+h.before); n != 1 {
			return nil, fmt.Errorf("%s: %s has the old lines %d times, want once:\n%s", p.name, h.file, n, h.before)
		}
		changed[h.file] = strings.TrimPrefix(strings.Replace("\n"+text, "\n"+h.before, "\n"+h.after, 1), "\n")
	}
	return changed, nil
}

// Every planted bug still fits the sources.
func TestPlantedBugsApply(t *testing.T) {
	t.Parallel()
	bugs := plantedBugs(t)
	if len(bugs) < 30 {
		t.Errorf("%d planted bugs, want at least 30", len(bugs))
	}
	for _, p := range bugs {
		if p.what == "" || len(p.hunks) == 0 {
			t.Errorf("%s: a description and a change are needed", p.name)
		}
		if _, err := p.sources(); err != nil {
			t.Error(err)
		}
	}
}

// build builds the tests of this package with the bug, without a change of the tree.
func (p planted) build(t *testing.T, dir string) (program string, err error) {
	t.Helper()
	sources, err := p.sources()
	if err != nil {
		return "", err
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		return "", err
	}
	replace := map[string]string{}
	for file, text := range sources {
		copied := filepath.Join(dir, strings.ReplaceAll(file, "/", "_"))
		replace[filepath.Join(root, file)] = copied
		if err := os.WriteFile(copied, []byte(text), 0o600); err != nil {
			return "", err
		}
	}
	list, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(overlay, list, 0o600); err != nil {
		return "", err
	}
	program = filepath.Join(dir, "planted.test")
	out, err := exec.CommandContext(t.Context(), "go", "test", "-c", "-vet=off", "-overlay", overlay, "-o", program, ".").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return program, nil
}

var (
	foundSeed = regexp.MustCompile(`(?m)seed (\d+): \d+ violations\n\s+(.*)`)
	lastSeed  = regexp.MustCompile(`=== RUN +TestSimulate/(\d+)`)
)

// TestPlanted builds the simulation with each planted bug, and runs seeds until one shows
// it. PLANTED names one bug, or is "all". See make planted.
func TestPlanted(t *testing.T) {
	name := os.Getenv("PLANTED")
	if name == "" {
		t.Skip("`make planted` runs this test")
	}
	seeds := number(t, "SIMULATE_SEEDS", 1000)
	for _, p := range plantedBugs(t) {
		if name != "all" && name != p.name {
			continue
		}
		t.Run(p.name, func(t *testing.T) {
			began := time.Now()
			program, err := p.build(t, t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			built := time.Since(began)
			cmd := exec.CommandContext(t.Context(), program, "-test.run=^TestSimulate$", "-test.v", "-test.timeout=1h")
			cmd.Env = append(os.Environ(), fmt.Sprintf("SIMULATE_SEEDS=%d", seeds), "SIMULATE_FIRST=1", "SIMULATE_TRACE=")
			out, err := cmd.CombinedOutput()
			if err == nil {
				t.Errorf("%s is not found within %d seeds", p.name, seeds)
				return
			}
			seed, rule := "?", "the run stops"
			if found := foundSeed.FindSubmatch(out); found != nil {
				seed, rule = string(found[1]), string(found[2])
			} else if all := lastSeed.FindAllSubmatch(out, -1); len(all) > 0 {
				seed = string(all[len(all)-1][1])
			}
			fmt.Printf("planted %s: seed %s: %.150s (built in %s, found in %s)\n", p.name, seed, rule, built.Round(time.Second), (time.Since(began) - built).Round(time.Second))
		})
	}
}

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/fiscalhub/fiscalhub/internal/needtest"
	"github.com/fiscalhub/fiscalhub/systemtest/harness"
)

// newParser returns the parser of command lines, without the options that print.
func newParser(t *testing.T, options ...kong.Option) *kong.Kong {
	t.Helper()
	options = append(options, kong.Name("fiscalhub"), kong.Vars{"version": version}, kong.Exit(func(int) {}), kong.Writers(&bytes.Buffer{}, &bytes.Buffer{}))
	parser, err := kong.New(&cli{}, options...)
	must(t, err)
	return parser
}

// Every command that does something has an example, and every example is a command line
// that the program understands.
func TestEveryCommandHasExamplesThatParse(t *testing.T) {
	t.Parallel()
	known, parser := map[string]bool{}, newParser(t)
	visitCommands(parser.Model.Node, func(n *kong.Node) {
		if n.Leaf() {
			known[commandPath(n)] = true
		}
	})
	all := examples()
	for path := range known {
		if len(all[path]) == 0 {
			t.Errorf("%s has no example", path)
		}
	}
	for path, lines := range all {
		if !known[path] {
			t.Errorf("there is no command %s", path)
		}
		for _, line := range lines {
			words := shellWords(strings.TrimPrefix(line, "source <("))[1:]
			if _, err := parser.Parse(words); err != nil && !strings.Contains(err.Error(), "no such file") {
				t.Errorf("%s: %v", line, err)
			}
			path := strings.TrimSuffix(path, " write") // the command export without a name
			if !strings.HasPrefix(strings.Join(words, " "), path) {
				t.Errorf("%q is an example of another command than %s", line, path)
			}
		}
	}
}

// The variable of a flag is FISCALHUB_ and the name of the flag in capitals, with an
// underscore for each dash, also when the name has digits.
func TestEveryFlagHasTheVariableOfItsName(t *testing.T) {
	t.Parallel()
	visitCommands(newParser(t, kong.DefaultEnvars("FISCALHUB")).Model.Node, func(n *kong.Node) {
		for _, flag := range n.Flags {
			want := "FISCALHUB_" + strings.ToUpper(strings.ReplaceAll(flag.Name, "-", "_"))
			for _, got := range flag.Envs {
				if got != want {
					t.Errorf("the variable of --%s of %s is %s, want %s", flag.Name, n.Path(), got, want)
				}
			}
		}
	})
}

// Help shows the placeholder of a flag instead of its default, so the text names the
// default.
func TestHelpNamesEveryDefault(t *testing.T) {
	t.Parallel()
	visitCommands(newParser(t).Model.Node, func(n *kong.Node) {
		for _, flag := range n.Flags {
			if flag.HasDefault && flag.PlaceHolder != "" && !strings.Contains(flag.Help, "(default "+flag.Default) {
				t.Errorf("the help of --%s of %s does not name its default %s: %s", flag.Name, n.Path(), flag.Default, flag.Help)
			}
		}
	})
}

// shellWords splits a command line as a shell does, up to a redirection.
func shellWords(line string) []string {
	line, _, _ = strings.Cut(strings.TrimSuffix(line, ")"), " > ")
	var words []string
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			words = append(words, part)
		} else {
			words = append(words, strings.Fields(part)...)
		}
	}
	return words
}

func TestCompletionOffersWhatMayFollow(t *testing.T) {
	t.Parallel()
	root := newParser(t).Model.Node
	for line, want := range map[string]string{
		"taxp":                              "taxpayer",
		"taxpayer ":                         "create list resume show suspend update",
		"taxpayer c":                        "create",
		"credential create --env":           "--environment",
		"credential create --environment ":  "certification production sandbox",
		"credential create --environment p": "production",
		"--data x taxpayer l":               "list",
		"completion ":                       "bash fish zsh",
		"keys rotate c":                     "cursor",
		"taxpayer list --wi":                "--wide",
		"comp":                              "completion",
	} {
		if got := strings.Join(candidates(root, strings.Split(line, " ")), " "); got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}

// bash runs the script as it does when somebody presses the tabulator.
func TestBashCompletes(t *testing.T) {
	t.Parallel()
	script := `eval "$(fiscalhub completion bash)"
COMP_WORDS=(fiscalhub taxpayer s)
COMP_CWORD=2
_fiscalhub
printf '%s\n' "${COMPREPLY[@]}"`
	c := exec.CommandContext(t.Context(), "bash", "-c", script)
	c.Env = append(os.Environ(), "PATH="+filepath.Dir(harness.Program(t))+string(filepath.ListSeparator)+os.Getenv("PATH"))
	out, err := c.CombinedOutput()
	if err != nil || string(out) != "show\nsuspend\n" {
		t.Errorf("%v\n%s", err, out)
	}
}

// A page is formatted without a warning.
func TestManualPages(t *testing.T) {
	t.Parallel()
	parser := newParser(t)
	addExamples(parser.Model)
	dir := t.TempDir()
	must(t, (manCmd{Out: dir}).Run(&terminal{ctx: t.Context(), cli: &cli{}, out: &bytes.Buffer{}, errOut: &bytes.Buffer{}}, parser))
	page, err := os.ReadFile(filepath.Join(dir, "fiscalhub-taxpayer-create.1"))
	must(t, err)
	for _, want := range []string{".SH NAME\nfiscalhub\\-taxpayer\\-create \\- Create a taxpayer\n", ".SH EXAMPLES", "legal\\-name"} {
		if !strings.Contains(string(page), want) {
			t.Errorf("no %q in\n%s", want, page)
		}
	}
	out, err := exec.CommandContext(t.Context(), needtest.Program(t, "groff"), "-k", "-man", "-Tutf8", "-ww", "-z", filepath.Join(dir, "fiscalhub-taxpayer-create.1")).CombinedOutput()
	if err != nil || len(out) > 0 {
		t.Errorf("%v\n%s", err, out)
	}
}

package api_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/fiscalhub/fiscalhub/"

// dialers are the names with which a program opens connections. Their packages
// also have names for servers, so an import alone is allowed.
func dialers() map[string][]string {
	return map[string][]string{
		"net":        {"Dial", "DialTimeout", "DialTCP", "DialUDP", "DialUnix", "DialIP", "Dialer", "Resolver", "LookupHost", "LookupIP", "LookupAddr"},
		"net/http":   {"Client", "DefaultClient", "DefaultTransport", "Transport", "Get", "Head", "Post", "PostForm", "NewRequest", "NewRequestWithContext"},
		"crypto/tls": {"Dial", "DialWithDialer", "Dialer", "Client"},
		"net/smtp":   nil, // every name
		"net/rpc":    nil,
		"os/exec":    nil,

		// Only the program creates the sender of events, and not for the sandbox.
		module + "internal/webhook":  {"New", "Sender"},
		module + "internal/netguard": {"Transport"},
	}
}

// The packages of the sandbox contain no code that opens connections. Only the
// store connects to its database, with its drivers.
func TestSandboxCodeCannotDialOut(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	todo := []string{"internal/api", "internal/pipeline"}
	for len(todo) > 0 {
		dir := todo[0]
		todo = todo[1:]
		if seen[dir] {
			continue
		}
		seen[dir] = true
		todo = append(todo, checkDialers(t, dir)...)
	}
	if !seen["internal/store"] || !seen["internal/fiscal"] || len(seen) < 6 {
		t.Errorf("only these packages were checked: %v", seen)
	}
}

// checkDialers reports the dialers that a package of this module uses, and returns
// the packages of this module that it imports.
func checkDialers(t *testing.T, dir string) []string {
	t.Helper()
	root := filepath.Join("..", "..", dir)
	entries, err := os.ReadDir(root)
	must(t, err)
	var ours []string
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), ".go") || strings.HasSuffix(entry.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, entry.Name()), nil, parser.SkipObjectResolution)
		must(t, err)
		names := map[string][]string{} // forbidden names by local package name
		for _, imported := range file.Imports {
			path, err := strconv.Unquote(imported.Path.Value)
			must(t, err)
			forbidden, ok := dialers()[path]
			if own, isOurs := strings.CutPrefix(path, module); isOurs && !ok {
				ours = append(ours, own)
			}
			if !ok {
				continue
			}
			if forbidden == nil {
				t.Errorf("%s/%s imports %s", dir, entry.Name(), path)
			}
			name := path[strings.LastIndex(path, "/")+1:]
			if imported.Name != nil {
				name = imported.Name.Name
			}
			names[name] = forbidden
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if use, ok := n.(*ast.SelectorExpr); ok {
				if from, ok := use.X.(*ast.Ident); ok && slices.Contains(names[from.Name], use.Sel.Name) {
					t.Errorf("%s/%s uses %s.%s", dir, entry.Name(), from.Name, use.Sel.Name)
				}
			}
			return true
		})
	}
	return ours
}

package store_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// Every statement on an integrator's rows names the environment and the
// taxpayer, so that no caller can forget them.
func TestStatementsAreScoped(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	tenants := regexp.MustCompile(`(?i)\b(FROM|INTO|UPDATE)\s+(invoices|idempotency|history|certificates|notices|feeds|endpoints|deliveries|delivery_attempts|sealed_answers|sources|inbound|parked|notified)\b`)
	seen := 0
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range sqlTexts(parsed) {
			if !tenants.MatchString(text) {
				continue
			}
			seen++
			// Where rows are chosen, or which columns they are given.
			_, scope, chosen := strings.Cut(text, "WHERE")
			if !chosen {
				scope = text
			}
			if !strings.Contains(scope, "environment") || !strings.Contains(scope, "taxpayer_id") {
				t.Errorf("%s: a statement without environment and taxpayer_id:\n%s", file, text)
			}
		}
	}
	if seen < 12 {
		t.Fatalf("only %d statements found: the test no longer sees them", seen)
	}
}

// sqlTexts returns the string expressions of a file, with the «name» of each
// part that is not a literal.
func sqlTexts(file *ast.File) []string {
	var texts []string
	ast.Inspect(file, func(n ast.Node) bool {
		switch e := n.(type) {
		case *ast.BinaryExpr:
			if e.Op == token.ADD {
				texts = append(texts, textOf(e))
				return false
			}
		case *ast.BasicLit:
			if e.Kind == token.STRING {
				texts = append(texts, textOf(e))
			}
		}
		return true
	})
	return texts
}

func textOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BinaryExpr:
		return textOf(e.X) + textOf(e.Y)
	case *ast.BasicLit:
		if text, err := strconv.Unquote(e.Value); err == nil {
			return text
		}
	}
	if name, ok := e.(*ast.Ident); ok {
		return "«" + name.Name + "»"
	}
	return "«»"
}

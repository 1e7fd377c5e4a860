package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// embeddedOptions returns the position of every embedded field of a struct that is named
// Options or ends in Options.
func embeddedOptions(t *testing.T, path string, source any) (found []string) {
	t.Helper()
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, source, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		s, ok := n.(*ast.StructType)
		if !ok {
			return true
		}
		for _, field := range s.Fields.List {
			if len(field.Names) == 0 && strings.HasSuffix(typeName(field.Type), "Options") {
				found = append(found, files.Position(field.Pos()).String())
			}
		}
		return true
	})
	return found
}

// typeName returns the name of a type without its package and without a pointer.
func typeName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return typeName(e.X)
	case *ast.SelectorExpr:
		return e.Sel.Name
	case *ast.Ident:
		return e.Name
	}
	return ""
}

// A type that embeds its Options has exported fields: a caller could change them after the
// constructor has checked them.
func TestOptionsAreNotEmbedded(t *testing.T) {
	t.Parallel()
	example := "package p\ntype a struct{ Options }\ntype b struct{ x int; *q.ListOptions }\ntype c struct{ options Options }\n"
	if got, want := embeddedOptions(t, "p.go", example), []string{"p.go:2:16", "p.go:3:23"}; !slices.Equal(got, want) {
		t.Fatalf("the example has embedded options at %v, want %v", got, want)
	}
	files := 0
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		files++
		for _, at := range embeddedOptions(t, path, nil) {
			t.Errorf("%s: a struct embeds Options; give it unexported fields", at)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 100 {
		t.Errorf("the test has read %d files, which is not the tree", files)
	}
}

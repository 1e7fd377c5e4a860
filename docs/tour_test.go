package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"regexp"
	"testing"
)

// Every link of the tour that names a function, a method or a type leads to the file
// that declares it.
func TestTourNamesWhatExists(t *testing.T) {
	t.Parallel()
	links := regexp.MustCompile("\\[`([\\w.]+)`\\]\\((\\.\\./[\\w/]+\\.go)\\)").FindAllStringSubmatch(read(t, "tour.md"), -1)
	if len(links) < 30 {
		t.Fatalf("the tour has %d links, want at least 30", len(links))
	}
	declared := map[string]map[string]bool{}
	for _, link := range links {
		name, file := link[1], filepath.FromSlash(link[2])
		if declared[file] == nil {
			declared[file] = declarations(t, file)
		}
		if !declared[file][name] {
			t.Errorf("%s is not declared in %s", name, file)
		}
	}
}

// declarations returns the names that a file declares; methods as Type.Method.
func declarations(t *testing.T, path string) map[string]bool {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			names[receiver(d)+d.Name.Name] = true
		case *ast.GenDecl:
			for _, s := range d.Specs {
				if s, ok := s.(*ast.TypeSpec); ok {
					names[s.Name.Name] = true
				}
			}
		}
	}
	return names
}

// receiver returns the type of a method and a full stop, or nothing.
func receiver(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return ""
	}
	kind := d.Recv.List[0].Type
	if star, ok := kind.(*ast.StarExpr); ok {
		kind = star.X
	}
	if name, ok := kind.(*ast.Ident); ok {
		return name.Name + "."
	}
	return ""
}

// Every test that the page of promises names exists in the package that it names.
func TestPromisesNameTestsThatExist(t *testing.T) {
	t.Parallel()
	rows := regexp.MustCompile("((?:`Test\\w+`(?:, )?)+) in `([\\w/]+)`").FindAllStringSubmatch(read(t, "testing.md"), -1)
	if len(rows) < 15 {
		t.Fatalf("the page has %d promises, want at least 15", len(rows))
	}
	packages := map[string]map[string]bool{} // the declarations in tests, by package
	for _, row := range rows {
		names := packages[row[2]]
		if names == nil {
			files, err := filepath.Glob(filepath.Join("..", filepath.FromSlash(row[2]), "*_test.go"))
			if err != nil {
				t.Fatal(err)
			}
			names = map[string]bool{}
			for _, file := range files {
				maps.Copy(names, declarations(t, file))
			}
			packages[row[2]] = names
		}
		for _, name := range regexp.MustCompile(`Test\w+`).FindAllString(row[1], -1) {
			if !names[name] {
				t.Errorf("%s has no test %s", row[2], name)
			}
		}
	}
}

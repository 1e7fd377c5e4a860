// Command picture draws docs/pictures/architecture.svg: the packages of the
// module on their floors and the imports between them.
//
// The floors and the wording come from the table in docs/architecture.md, the
// arrows from "go list". The same input gives the same bytes on every machine.
package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "picture:", err)
		os.Exit(1)
	}
}

// run draws the module of the working directory and writes the file.
func run(ctx context.Context) error {
	root, err := goList(ctx, ".", "-m", "-f", "{{.Dir}}")
	if err != nil {
		return err
	}
	root = strings.TrimSpace(root)
	svg, err := draw(ctx, root)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(root, "docs", "pictures", "architecture.svg"), svg, 0o644) //nolint:gosec // a page of the documentation, for everyone to read
}

// draw returns the picture of the module in the folder root. It fails when the
// table cannot be read or when an import points to a higher floor.
func draw(ctx context.Context, root string) ([]byte, error) {
	page, err := os.ReadFile(filepath.Join(root, "docs", "architecture.md"))
	if err != nil {
		return nil, err
	}
	module, err := goList(ctx, root, "-m")
	if err != nil {
		return nil, err
	}
	list, err := goList(ctx, root, "-f", "{{.ImportPath}}{{range .Imports}} {{.}}{{end}}", "./...", "github.com/fiscalhub/fiscalhub/client")
	if err != nil {
		return nil, err
	}
	packages, err := newGraph(readTable(string(page)), readImports(list, strings.TrimSpace(module)+"/"))
	if err != nil {
		return nil, err
	}
	return render(newLayout(packages, search{starts: 100, finalists: 2})), nil
}

// goList runs "go list" in the folder dir and returns its output.
func goList(ctx context.Context, dir string, args ...string) (string, error) {
	list := exec.CommandContext(ctx, "go", append([]string{"list"}, args...)...) //nolint:gosec // the arguments are constants of this program
	list.Dir = dir
	list.Stderr = os.Stderr
	out, err := list.Output()
	if err != nil {
		return "", fmt.Errorf("go list %s: %w", strings.Join(args, " "), err)
	}
	return string(out), nil
}

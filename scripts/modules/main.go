// Command modules lists which modules of others are linked into the program, and under
// which licence:
//
//	modules licences                writes docs/licences.md
//	modules notices                 prints the licence texts, for a release
//	modules sbom VERSION BINARY     prints a CycloneDX bill of materials of a binary
//
// Texts come from the module cache. The same input gives the same bytes on every machine.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "modules:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	root, err := goCommand(ctx, ".", "list", "-m", "-f", "{{.Dir}}")
	if err != nil {
		return err
	}
	switch {
	case len(args) == 1 && args[0] == "licences":
		all, err := linkedModules(ctx, root)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(root, "docs", "licences.md"), page(all), 0o644) //nolint:gosec // a page of the documentation, for everyone to read
	case len(args) == 1 && args[0] == "notices":
		all, err := linkedModules(ctx, root)
		if err != nil {
			return err
		}
		_, err = out.Write(notices(all))
		return err
	case len(args) == 3 && args[0] == "sbom":
		text, err := billOfMaterials(ctx, args[1], args[2])
		if err != nil {
			return err
		}
		_, err = out.Write(text)
		return err
	}
	return errors.New("usage: modules licences | notices | sbom VERSION BINARY")
}

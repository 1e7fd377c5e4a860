package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// module is a module of others, with its licences.
type module struct {
	path, version string
	licences      []string // SPDX identifiers
	files         []licenceFile
}

type licenceFile struct{ name, text string }

// standardLibrary is the name under which the Go standard library is listed.
const standardLibrary = "std"

// goCommand runs the go command in a folder and returns its output without the last line
// break.
func goCommand(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...) //nolint:gosec // our own arguments
	// The list must not depend on the machine that makes it.
	cmd.Dir, cmd.Env, cmd.Stderr = dir, append(os.Environ(), "GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=0"), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go %s: %w", args[0], err)
	}
	return strings.TrimSpace(string(out)), nil
}

// linkedModules lists the modules that the program links, in order, after the standard
// library.
func linkedModules(ctx context.Context, root string) ([]module, error) {
	out, err := goCommand(ctx, root, "list", "-deps", "-f", "{{with .Module}}{{.Path}}\t{{.Version}}\t{{.Dir}}{{end}}", "./cmd/fiscalhub")
	if err != nil {
		return nil, err
	}
	goRoot, err := goCommand(ctx, root, "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	own, err := goCommand(ctx, root, "list", "-m")
	if err != nil {
		return nil, err
	}
	std := readStandardLibrary(goRoot)
	lines := strings.Split(out, "\n")
	slices.Sort(lines)
	var all []module
	for _, line := range slices.Compact(lines) {
		fields := strings.Split(line, "\t")
		if len(fields) != 3 || fields[1] == "" || strings.HasPrefix(fields[0], own+"/") {
			continue // the standard library and our own modules
		}
		m, err := readModule(fields[0], fields[1], fields[2])
		if err != nil {
			return nil, err
		}
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b module) int { return cmp.Compare(a.path, b.path) })
	return append([]module{std}, all...), nil
}

var (
	licenceName  = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents)`)
	ownLicence   = regexp.MustCompile(`(?i)^(licen[cs]e|copying)(\.(txt|md))?$`)
	licenceMarks = []struct{ id, mark string }{
		{"Apache-2.0", "apache license version 2.0"},
		{"MPL-2.0", "mozilla public license version 2.0"},
		{"MIT", "permission is hereby granted, free of charge, to any person obtaining a copy"},
		{"ISC", "permission to use, copy, modify, and/or distribute this software for any purpose"},
		{"BSD-2-Clause", "redistribution and use in source and binary forms"},
	}
)

// readStandardLibrary reads the licence of Go. Some packages of Go do not contain its text.
func readStandardLibrary(goRoot string) module {
	std, err := readModule(standardLibrary, "", goRoot)
	if err != nil {
		return module{path: standardLibrary, licences: []string{"BSD-3-Clause"}}
	}
	return std
}

// readModule reads the licence of a module from its folder. It fails when there is none,
// or when it is not one of the licences that licenceMarks knows: a person must read it.
func readModule(path, version, dir string) (module, error) {
	m := module{path: path, version: version}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return m, fmt.Errorf("%s: %w", path, err)
	}
	for _, e := range entries {
		if e.IsDir() || !licenceName.MatchString(e.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return m, err
		}
		m.files = append(m.files, licenceFile{e.Name(), string(text)})
		if ownLicence.MatchString(e.Name()) {
			m.licences = append(m.licences, classify(string(text))...)
		}
	}
	if len(m.licences) == 0 {
		return m, fmt.Errorf("%s %s: no licence that this program knows; read the files in its folder", path, version)
	}
	return m, nil
}

// classify returns the SPDX identifiers of the licences that a text contains.
func classify(text string) []string {
	plain := strings.Join(strings.Fields(strings.ToLower(strings.NewReplacer(",", ", ", "(", " ", ")", " ", "*", " ", "//", " ").Replace(text))), " ")
	plain = strings.ReplaceAll(strings.ReplaceAll(plain, "license, version", "license version"), ", ,", ",")
	var ids []string
	for _, l := range licenceMarks {
		if !strings.Contains(plain, l.mark) {
			continue
		}
		if l.id == "BSD-2-Clause" && (strings.Contains(plain, "neither the name") || strings.Contains(plain, "names of its contributors may not")) {
			l.id = "BSD-3-Clause"
		}
		ids = append(ids, l.id)
	}
	return ids
}

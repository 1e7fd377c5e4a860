package main

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// noFloor is the floor of a package that the table puts on none.
const noFloor = -1

// A row is a row of the package table: one package.
type row struct {
	name  string // without the module's path
	floor int
	owns  string
}

// readTable returns the rows of the package table in docs/architecture.md.
func readTable(page string) []row {
	var rows []row
	for _, m := range regexp.MustCompile("(?m)^\\| ([0-9]+|–) \\| `([^`]+)` \\| ([^|]*) \\|").FindAllStringSubmatch(page, -1) {
		floor, err := strconv.Atoi(m[1])
		if err != nil {
			floor = noFloor
		}
		rows = append(rows, row{name: m[2], floor: floor, owns: strings.ReplaceAll(m[3], "`", "")})
	}
	return rows
}

// readImports reads lines of "package import import …" and returns for each
// package of the module those of its imports that belong to the module.
func readImports(list, module string) map[string][]string {
	imports := map[string][]string{}
	for line := range strings.Lines(list) {
		fields := strings.Fields(line)
		name := strings.TrimPrefix(fields[0], module)
		imports[name] = nil
		for _, f := range fields[1:] {
			if ours, ok := strings.CutPrefix(f, module); ok {
				imports[name] = append(imports[name], ours)
			}
		}
	}
	return imports
}

// A pkg is a package as it is drawn.
type pkg struct {
	row
	beside  bool     // the table puts it on no floor
	imports []string // without those that follow from others, sorted
}

// newGraph returns the packages to draw, sorted by name: those that have a
// floor, and those without a floor that one of them imports. The latter stand
// on the lowest floor that imports them. It fails when an import points up.
func newGraph(rows []row, imports map[string][]string) ([]pkg, error) {
	packages := map[string]*pkg{}
	var waiting []row
	for _, r := range rows {
		if r.floor == noFloor {
			waiting = append(waiting, r)
		} else {
			packages[r.name] = &pkg{row: r}
		}
	}
	if len(packages) == 0 {
		return nil, fmt.Errorf("docs/architecture.md has no table of packages")
	}
	for added := true; added; {
		added = false
		for _, r := range waiting {
			if packages[r.name] != nil {
				continue
			}
			for _, name := range slices.Sorted(maps.Keys(packages)) {
				if slices.Contains(imports[name], r.name) && (r.floor == noFloor || packages[name].floor < r.floor) {
					r.floor = packages[name].floor
				}
			}
			if r.floor != noFloor {
				packages[r.name], added = &pkg{row: r, beside: true}, true
			}
		}
	}

	var sorted []pkg
	for _, name := range slices.Sorted(maps.Keys(packages)) {
		p := packages[name]
		for _, i := range imports[name] {
			target := packages[i]
			if target == nil {
				return nil, fmt.Errorf("%s imports %s, which has no row in docs/architecture.md", name, i)
			}
			if target.floor > p.floor {
				return nil, fmt.Errorf("%s on floor %d imports %s on floor %d: imports must not point up", name, p.floor, i, target.floor)
			}
			if !follows(imports, name, i) {
				p.imports = append(p.imports, i)
			}
		}
		slices.Sort(p.imports)
		sorted = append(sorted, *p)
	}
	return sorted, nil
}

// follows reports whether from reaches to through another of its imports, so
// that the arrow between them need not be drawn.
func follows(imports map[string][]string, from, to string) bool {
	var reaches func(name string) bool
	reaches = func(name string) bool {
		return name == to || slices.ContainsFunc(imports[name], reaches)
	}
	return slices.ContainsFunc(imports[from], func(name string) bool { return name != to && reaches(name) })
}

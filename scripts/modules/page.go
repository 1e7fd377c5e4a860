package main

import (
	"fmt"
	"strings"
)

const pageHead = `# Licences of the linked modules

The program contains the modules below and the Go standard library. The table is for linux/amd64; a build for another system links a few other modules. ` + "`go run ./scripts/modules licences`" + ` writes this page from the module cache, and a test fails when it is stale. A release contains the texts of all licences.

| module | version | licence | further files |
|---|---|---|---|
`

// page returns docs/licences.md.
func page(all []module) []byte {
	var b strings.Builder
	b.WriteString(pageHead)
	for _, m := range all {
		name, version := "`"+m.path+"`", m.version
		if m.path == standardLibrary {
			name, version = "Go standard library", "of the Go release in `go.mod`"
		}
		var further []string
		for _, f := range m.files {
			if m.path != standardLibrary && !ownLicence.MatchString(f.name) {
				further = append(further, f.name)
			}
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", name, version, strings.Join(m.licences, ", "), strings.Join(further, ", "))
	}
	return []byte(b.String())
}

// notices returns the licence texts of all modules. Equal texts appear once.
func notices(all []module) []byte {
	holders, texts := map[string][]string{}, []string{}
	for _, m := range all {
		for _, f := range m.files {
			if holders[f.text] == nil {
				texts = append(texts, f.text)
			}
			holders[f.text] = append(holders[f.text], strings.TrimSpace(m.path+" "+m.version)+" ("+f.name+")")
		}
	}
	var b strings.Builder
	b.WriteString("The program contains the following software of others.\n")
	for _, text := range texts {
		fmt.Fprintf(&b, "\n%s\n%s\n\n%s\n", strings.Repeat("=", 80), strings.Join(holders[text], "\n"), strings.TrimSpace(text))
	}
	return []byte(b.String())
}

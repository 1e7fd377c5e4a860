package main

import (
	"context"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"unicode"

	"github.com/google/uuid"
)

// The parts of a CycloneDX 1.6 document that we write. It has no time stamp, so that the
// same binary always has the same document.
type (
	bom struct {
		Schema       string       `json:"$schema"`
		Format       string       `json:"bomFormat"`
		SpecVersion  string       `json:"specVersion"`
		SerialNumber string       `json:"serialNumber"`
		Version      int          `json:"version"`
		Metadata     metadata     `json:"metadata"`
		Components   []component  `json:"components"`
		Dependencies []dependency `json:"dependencies"`
	}
	metadata struct {
		Component component `json:"component"`
	}
	component struct {
		Type       string          `json:"type"`
		Ref        string          `json:"bom-ref"`
		Name       string          `json:"name"`
		Version    string          `json:"version"`
		Hashes     []hash          `json:"hashes,omitempty"`
		Licences   []licenceChoice `json:"licenses,omitempty"`
		PURL       string          `json:"purl"`
		Properties []property      `json:"properties,omitempty"`
	}
	hash struct {
		Algorithm string `json:"alg"`
		Content   string `json:"content"`
	}
	licenceChoice struct {
		Licence licence `json:"license"`
	}
	licence struct {
		ID string `json:"id"`
	}
	property struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	}
	dependency struct {
		Ref       string   `json:"ref"`
		DependsOn []string `json:"dependsOn"`
	}
)

// billOfMaterials lists what a binary was built from, as the Go linker has recorded it in
// the binary. The modules must be in the module cache.
func billOfMaterials(ctx context.Context, version, binary string) ([]byte, error) {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", binary, err)
	}
	content, err := os.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	cache, err := goCommand(ctx, ".", "env", "GOMODCACHE")
	if err != nil {
		return nil, err
	}
	goRoot, err := goCommand(ctx, ".", "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	digest := sha256.Sum256(content)
	program := newComponent("application", info.Main.Path, version, []string{"Apache-2.0"})
	program.Hashes = []hash{{"SHA-256", hex.EncodeToString(digest[:])}}
	for _, s := range info.Settings {
		program.Properties = append(program.Properties, property{"go:build:" + s.Key, s.Value})
	}
	std := readStandardLibrary(goRoot)
	all := []component{newComponent("library", std.path, strings.TrimPrefix(info.GoVersion, "go"), std.licences)}
	for _, d := range info.Deps {
		if strings.HasPrefix(d.Path, info.Main.Path+"/") {
			continue // a module of this project, which is part of the program itself
		}
		if d.Replace != nil {
			d = d.Replace
		}
		m, err := readModule(d.Path, d.Version, filepath.Join(cache, escapeUpper(d.Path)+"@"+escapeUpper(d.Version)))
		if err != nil {
			return nil, err
		}
		c := newComponent("library", d.Path, d.Version, m.licences)
		c.Properties = []property{{"go:sum", d.Sum}}
		all = append(all, c)
	}
	document := bom{
		Schema: "http://cyclonedx.org/schema/bom-1.6.schema.json", Format: "CycloneDX", SpecVersion: "1.6", Version: 1,
		SerialNumber: "urn:uuid:" + uuid.NewSHA1(uuid.NameSpaceOID, digest[:]).String(),
		Metadata:     metadata{program}, Components: all, Dependencies: []dependency{{Ref: program.Ref, DependsOn: []string{}}},
	}
	for _, c := range all {
		document.Dependencies[0].DependsOn = append(document.Dependencies[0].DependsOn, c.Ref)
	}
	text, err := json.MarshalIndent(document, "", "  ")
	return append(text, '\n'), err
}

func newComponent(kind, path, version string, licences []string) component {
	ref := "pkg:golang/" + path + "@" + url.QueryEscape(version)
	c := component{Type: kind, Ref: ref, Name: path, Version: version, PURL: ref}
	for _, id := range licences {
		c.Licences = append(c.Licences, licenceChoice{licence{id}})
	}
	return c
}

// escapeUpper spells a path or version as the module cache does: an exclamation mark and
// the small letter for each capital letter.
func escapeUpper(s string) string {
	var b strings.Builder
	for _, r := range s {
		if unicode.IsUpper(r) {
			b.WriteByte('!')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

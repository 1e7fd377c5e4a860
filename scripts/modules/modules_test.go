package main

import (
	"bytes"
	"debug/buildinfo"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTheLicencesPageIsCurrent(t *testing.T) {
	t.Parallel()
	all, err := linkedModules(t.Context(), "../..")
	if err != nil {
		t.Fatal(err)
	}
	shown, err := os.ReadFile("../../docs/licences.md")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(shown), string(page(all))); diff != "" {
		t.Errorf("docs/licences.md is stale: run go run ./scripts/modules licences (-page +modules):\n%s", diff)
	}
	texts := string(notices(all))
	for _, m := range all[1:] {
		if !strings.Contains(texts, m.path+" "+m.version+" (") {
			t.Errorf("the notices do not contain %s", m.path)
		}
	}
}

// The bill of materials lists each module of the binary once, and the same binary gives the
// same bytes.
func TestABillOfMaterialsIsCompleteAndRepeatable(t *testing.T) {
	t.Parallel()
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	text, err := billOfMaterials(t.Context(), "1.2.3", binary)
	if err != nil {
		t.Fatal(err)
	}
	again, err := billOfMaterials(t.Context(), "1.2.3", binary)
	if err != nil || !bytes.Equal(text, again) {
		t.Errorf("a second time: %v, %d bytes instead of %d", err, len(again), len(text))
	}
	var document bom
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&document); err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`^urn:uuid:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`).MatchString(document.SerialNumber) {
		t.Errorf("the serial number is %s", document.SerialNumber)
	}
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"pkg:golang/std@" + strings.TrimPrefix(info.GoVersion, "go")}
	for _, d := range info.Deps {
		want = append(want, "pkg:golang/"+d.Path+"@"+strings.ReplaceAll(d.Version, "+", "%2B"))
	}
	var got []string
	for _, c := range document.Components {
		got = append(got, c.PURL)
		if c.Ref != c.PURL || len(c.Licences) == 0 || c.Version == "" {
			t.Errorf("an incomplete component: %+v", c)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the components (-want +got):\n%s", diff)
	}
	if !slices.Equal(document.Dependencies[0].DependsOn, got) || document.Dependencies[0].Ref != document.Metadata.Component.Ref {
		t.Errorf("the dependencies: %+v", document.Dependencies)
	}
}

func TestLicencesAreRecognised(t *testing.T) {
	t.Parallel()
	const bsd = "Redistribution and use in source and binary forms, with or without\nmodification, are permitted."
	for text, want := range map[string][]string{
		"Permission is hereby granted, free of charge, to any person obtaining\na copy of this software":        {"MIT"},
		"                                 Apache License\n                           Version 2.0, January 2004": {"Apache-2.0"},
		bsd: {"BSD-2-Clause"},
		bsd + "\n  * Neither the name of the holder": {"BSD-3-Clause"},
		"Mozilla Public License Version 2.0":         {"MPL-2.0"},
		"All rights reserved.":                       nil,
		"Permission is hereby granted, free of charge, to any person obtaining a copy. Apache License, Version 2.0": {"Apache-2.0", "MIT"},
	} {
		if got := classify(text); !slices.Equal(got, want) {
			t.Errorf("%.40q: %v, want %v", text, got, want)
		}
	}
}

// A person must read a licence that the program does not know.
func TestAnUnknownLicenceIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, err := readModule("example.com/m", "v1.0.0", dir); err == nil {
		t.Error("a module without a licence was accepted")
	}
	if err := os.WriteFile(filepath.Join(dir, "LICENSE"), []byte("Ask me first."), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readModule("example.com/m", "v1.0.0", dir); err == nil || !strings.Contains(err.Error(), "example.com/m v1.0.0") {
		t.Errorf("an unknown licence: %v", err)
	}
}

package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const testVersion = "1.2.3~git20261116.abc"

// packed makes a release of small programs and returns its files.
func packed(t *testing.T) map[string][]byte {
	t.Helper()
	in, out := t.TempDir(), t.TempDir()
	files := map[string]string{
		"LICENCES.txt": "licences", "man/fiscalhub.1": ".TH FISCALHUB 1\n", "man/fiscalhub-serve.1": ".TH SERVE 1\n",
		"completion/bash": "b", "completion/zsh": "z", "completion/fish": "f",
	}
	for _, target := range []string{"linux-amd64", "linux-arm64", "darwin-arm64", "windows-amd64"} {
		files["bin/fiscalhub-"+target] = "program of " + target
	}
	for name, text := range files {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(in, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(in, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := run([]string{"-version", testVersion, "-epoch", "1794793930", "-in", in, "-out", out, "-root", "../.."}); err != nil {
		t.Fatal(err)
	}
	made := map[string][]byte{}
	entries, err := os.ReadDir(out)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if made[e.Name()], err = os.ReadFile(filepath.Join(out, e.Name())); err != nil {
			t.Fatal(err)
		}
	}
	return made
}

func TestTwoReleasesHaveTheSameBytes(t *testing.T) {
	t.Parallel()
	first, second := packed(t), packed(t)
	want := []string{
		"fiscalhub_1.2.3-git20261116.abc_darwin_arm64.tar.gz",
		"fiscalhub_1.2.3-git20261116.abc_linux_amd64.tar.gz", "fiscalhub_1.2.3-git20261116.abc_linux_amd64_image.tar",
		"fiscalhub_1.2.3-git20261116.abc_linux_arm64.tar.gz", "fiscalhub_1.2.3-git20261116.abc_linux_arm64_image.tar",
		"fiscalhub_1.2.3-git20261116.abc_windows_amd64.zip",
	}
	var names []string
	for name, body := range first {
		names = append(names, name)
		if !bytes.Equal(body, second[name]) {
			t.Errorf("%s differs between two runs", name)
		}
	}
	slices.Sort(names)
	if !slices.Equal(names, want) {
		t.Errorf("the release has %q, want %q", names, want)
	}
}

// untar returns the headers and contents of a tar archive.
func untar(t *testing.T, archive []byte) (headers map[string]*tar.Header, contents map[string][]byte) {
	t.Helper()
	headers, contents = map[string]*tar.Header{}, map[string][]byte{}
	r := tar.NewReader(bytes.NewReader(archive))
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return headers, contents
		}
		if err != nil {
			t.Fatal(err)
		}
		headers[h.Name] = h
		if contents[h.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
}

func gunzip(t *testing.T, b []byte) []byte {
	t.Helper()
	r, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return plain
}

func TestArchivesHaveWhatPeopleNeed(t *testing.T) {
	t.Parallel()
	made := packed(t)
	for system, wantUnit := range map[string]bool{"linux_amd64": true, "darwin_arm64": false} {
		_, contents := untar(t, gunzip(t, made["fiscalhub_1.2.3-git20261116.abc_"+system+".tar.gz"]))
		for _, name := range []string{"fiscalhub", "LICENSE", "README.md", "README.es.md", "LICENCES.txt", "man/fiscalhub-serve.1", "completion/_fiscalhub"} {
			if len(contents["fiscalhub-1.2.3-git20261116.abc/"+name]) == 0 {
				t.Errorf("the archive of %s has no %s", system, name)
			}
		}
		if _, ok := contents["fiscalhub-1.2.3-git20261116.abc/systemd/fiscalhub.service"]; ok != wantUnit {
			t.Errorf("the archive of %s has a unit: %t", system, ok)
		}
	}
	windows := made["fiscalhub_1.2.3-git20261116.abc_windows_amd64.zip"]
	archive, err := zip.NewReader(bytes.NewReader(windows), int64(len(windows)))
	if err != nil {
		t.Fatal(err)
	}
	program, err := fs.ReadFile(archive, "fiscalhub-1.2.3-git20261116.abc/fiscalhub.exe")
	if err != nil || string(program) != "program of windows-amd64" {
		t.Errorf("the program of Windows is %q, %v", program, err)
	}
}

// Every digest of the image names its bytes. It runs without root, with a health check.
func TestImage(t *testing.T) {
	t.Parallel()
	_, files := untar(t, packed(t)["fiscalhub_1.2.3-git20261116.abc_linux_amd64_image.tar"])
	for name, body := range files {
		if sum, ok := strings.CutPrefix(name, "blobs/sha256/"); ok && sum != "" && sum != fmt.Sprintf("%x", sha256.Sum256(body)) {
			t.Errorf("%s has other bytes", name)
		}
	}
	for _, name := range []string{"index.json", "manifest.json", "oci-layout"} {
		for _, sum := range regexp.MustCompile(`[0-9a-f]{64}`).FindAllString(string(files[name]), -1) {
			if files["blobs/sha256/"+sum] == nil {
				t.Errorf("%s names %s, which is missing", name, sum)
			}
		}
	}
	var manifest []struct{ Config, Layers any }
	if err := json.Unmarshal(files["manifest.json"], &manifest); err != nil {
		t.Fatal(err)
	}
	var config struct {
		Architecture string
		Config       struct {
			User        string
			Entrypoint  []string
			Healthcheck struct{ Test []string }
		}
		Rootfs struct {
			DiffIDs []string `json:"diff_ids"`
		}
	}
	if err := json.Unmarshal(files[fmt.Sprint(manifest[0].Config)], &config); err != nil {
		t.Fatal(err)
	}
	if config.Config.User != "65532:65532" || config.Architecture != "amd64" || !slices.Equal(config.Config.Healthcheck.Test, []string{"CMD", "/usr/bin/fiscalhub", "healthcheck"}) {
		t.Errorf("the image has the config %+v", config)
	}
	headers, content := untar(t, files["blobs/sha256/"+strings.TrimPrefix(config.Rootfs.DiffIDs[0], "sha256:")])
	if h := headers["var/lib/fiscalhub/"]; h == nil || h.Uid != imageUser || h.Mode != 0o750 {
		t.Errorf("the data folder is %+v", h)
	}
	if h := headers["tmp/"]; h == nil || h.Mode != 0o1777 {
		t.Errorf("tmp is %+v", h)
	}
	if string(content["usr/bin/fiscalhub"]) != "program of linux-amd64" || !slices.Equal(config.Config.Entrypoint, []string{"/usr/bin/fiscalhub"}) {
		t.Errorf("the entry point is %q, %q", config.Config.Entrypoint, content["usr/bin/fiscalhub"])
	}
	if n := bytes.Count(content["etc/ssl/certs/ca-certificates.crt"], []byte("BEGIN CERTIFICATE")); n < 50 {
		t.Errorf("the image has %d roots", n)
	}
}

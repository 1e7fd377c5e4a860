package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/binary"
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
		"fiscalhub-1.2.3~git20261116.abc-1.aarch64.rpm", "fiscalhub-1.2.3~git20261116.abc-1.x86_64.rpm",
		"fiscalhub_1.2.3-git20261116.abc_darwin_arm64.tar.gz",
		"fiscalhub_1.2.3-git20261116.abc_linux_amd64.tar.gz", "fiscalhub_1.2.3-git20261116.abc_linux_amd64_image.tar",
		"fiscalhub_1.2.3-git20261116.abc_linux_arm64.tar.gz", "fiscalhub_1.2.3-git20261116.abc_linux_arm64_image.tar",
		"fiscalhub_1.2.3-git20261116.abc_windows_amd64.zip",
		"fiscalhub_1.2.3~git20261116.abc_amd64.deb", "fiscalhub_1.2.3~git20261116.abc_arm64.deb",
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

// A .deb has its parts in the order that dpkg asks for, and each file has its digest.
func TestDebianPackage(t *testing.T) {
	t.Parallel()
	deb := packed(t)["fiscalhub_1.2.3~git20261116.abc_arm64.deb"]
	var names []string
	members := map[string][]byte{}
	for rest := bytes.TrimPrefix(deb, []byte("!<arch>\n")); len(rest) > 0; {
		var size int
		name := strings.TrimSpace(string(rest[:16]))
		if _, err := fmt.Sscanf(string(rest[48:58]), "%d", &size); err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
		members[name] = rest[60 : 60+size]
		rest = rest[60+size+size%2:]
	}
	if !slices.Equal(names, []string{"debian-binary", "control.tar.gz", "data.tar.gz"}) {
		t.Fatalf("the members are %q", names)
	}
	_, control := untar(t, gunzip(t, members["control.tar.gz"]))
	headers, data := untar(t, gunzip(t, members["data.tar.gz"]))
	for _, want := range []string{"Version: " + testVersion + "\n", "Architecture: arm64\n", "Depends: passwd\n"} {
		if !strings.Contains(string(control["./control"]), want) {
			t.Errorf("the control file lacks %q:\n%s", want, control["./control"])
		}
	}
	if string(control["./conffiles"]) != "/etc/fiscalhub/fiscalhub.env\n" {
		t.Errorf("conffiles: %q", control["./conffiles"])
	}
	sums := string(control["./md5sums"])
	for name, h := range headers {
		if h.Uid != 0 || h.Gid != 0 || h.ModTime.Unix() != 1794793930 {
			t.Errorf("%s belongs to %d:%d and has the time %v", name, h.Uid, h.Gid, h.ModTime)
		}
		line := fmt.Sprintf("%x  %s\n", md5.Sum(data[name]), strings.TrimPrefix(name, "./"))
		if h.Typeflag == tar.TypeReg && !strings.HasSuffix(name, ".env") && !strings.Contains(sums, line) {
			t.Errorf("md5sums lacks %s", line)
		}
	}
	if string(data["./usr/bin/fiscalhub"]) != "program of linux-arm64" {
		t.Errorf("the program is %q", data["./usr/bin/fiscalhub"])
	}
	for _, script := range []string{"postinst", "prerm", "postrm"} {
		if !strings.HasPrefix(string(control["./"+script]), "#!/bin/sh\nset -e\n[ \"$1\" = ") {
			t.Errorf("%s begins with %.60q", script, control["./"+script])
		}
	}
}

// rpmValues reads a header of an .rpm, and returns the values by tag and the length.
func rpmValues(t *testing.T, b []byte) (values map[uint32][]byte, size int) {
	t.Helper()
	if !bytes.HasPrefix(b, []byte{0x8e, 0xad, 0xe8, 0x01}) {
		t.Fatalf("no header: % x", b[:8])
	}
	n, store := int(binary.BigEndian.Uint32(b[8:])), int(binary.BigEndian.Uint32(b[12:]))
	values = map[uint32][]byte{}
	for i := range n {
		entry := b[16+16*i:]
		values[binary.BigEndian.Uint32(entry)] = b[16+16*n+int(binary.BigEndian.Uint32(entry[8:])):]
	}
	return values, 16 + 16*n + store
}

func rpmText(b []byte) string { return string(b[:bytes.IndexByte(b, 0)]) }

// The digests of an .rpm are those of its bytes, and the region covers the whole header.
func TestRPMPackage(t *testing.T) {
	t.Parallel()
	rpm := packed(t)["fiscalhub-1.2.3~git20261116.abc-1.x86_64.rpm"]
	signature, size := rpmValues(t, rpm[96:])
	at := 96 + (size+7)/8*8
	header, size := rpmValues(t, rpm[at:])
	payload := rpm[at+size:]
	for name, pair := range map[string][2]string{
		"SHA-1 of the header":    {rpmText(signature[269]), fmt.Sprintf("%x", sha1.Sum(rpm[at:at+size]))},
		"SHA-256 of the header":  {rpmText(signature[273]), fmt.Sprintf("%x", sha256.Sum256(rpm[at:at+size]))},
		"MD5 of both":            {fmt.Sprintf("%x", signature[1004][:16]), fmt.Sprintf("%x", md5.Sum(rpm[at:]))},
		"SHA-256 of the payload": {rpmText(header[5092]), fmt.Sprintf("%x", sha256.Sum256(payload))},
		"name":                   {rpmText(header[1000]), "fiscalhub"},
		"version":                {rpmText(header[1001]), testVersion},
		"architecture":           {rpmText(header[1022]), "x86_64"},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s is %s, want %s", name, pair[0], pair[1])
		}
	}
	plain := gunzip(t, payload)
	if got := binary.BigEndian.Uint32(signature[1007]); int(got) != len(plain) {
		t.Errorf("the payload has %d bytes, and the package says %d", len(plain), got)
	}
	trailer := header[63]
	if back := int32(binary.BigEndian.Uint32(trailer[8:])); int(-back) != 16*int(binary.BigEndian.Uint32(rpm[at+8:])) {
		t.Errorf("the region covers %d bytes of the index", -back)
	}
	for _, name := range []string{"./usr/bin/fiscalhub\x00", "./etc/fiscalhub/fiscalhub.env\x00", "TRAILER!!!"} {
		if !bytes.Contains(plain, []byte(name)) {
			t.Errorf("the payload has no %q", name)
		}
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

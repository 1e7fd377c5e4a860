package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// file is a file or a folder of a package. Its owner is root, unless uid says otherwise.
type file struct {
	name     string // without a slash at the start
	mode     fs.FileMode
	body     []byte
	settings bool // the operator changes it, and an upgrade keeps the change
	doc      bool
	uid      int
}

func (f file) isDir() bool { return f.mode.IsDir() }

// sorted returns the files by name, each folder before what is in it.
func sorted(files []file) []file {
	slices.SortFunc(files, func(a, b file) int { return strings.Compare(a.name, b.name) })
	return files
}

// withFolders adds the folders that the files are in.
func withFolders(files []file) []file {
	have := map[string]bool{".": true}
	for _, f := range files {
		if f.isDir() {
			have[f.name] = true
		}
	}
	all := slices.Clone(files)
	for _, f := range files {
		for dir := path.Dir(f.name); !have[dir]; dir = path.Dir(dir) {
			have[dir] = true
			all = append(all, file{name: dir, mode: fs.ModeDir | 0o755})
		}
	}
	return sorted(all)
}

// source is a file of the project, and its name in a package.
type source struct {
	from, to string
	mode     fs.FileMode
}

func (r release) read(dir string, list []source) ([]file, error) {
	var files []file
	for _, s := range list {
		body, err := os.ReadFile(filepath.Join(dir, s.from))
		if err != nil {
			return nil, err
		}
		files = append(files, file{name: s.to, mode: s.mode, body: body})
	}
	return files, nil
}

// manPages reads the manual pages and calls name for the place of each.
func (r release) manPages(name func(base string) string) ([]file, error) {
	pages, err := filepath.Glob(filepath.Join(r.in, "man", "*.1"))
	if err != nil {
		return nil, err
	}
	if len(pages) == 0 {
		return nil, fmt.Errorf("%s has no manual pages", filepath.Join(r.in, "man"))
	}
	var files []file
	for _, page := range pages {
		body, err := os.ReadFile(page)
		if err != nil {
			return nil, err
		}
		files = append(files, file{name: name(filepath.Base(page)), mode: 0o644, body: body})
	}
	return files, nil
}

// portableFiles are the files of an archive, in one folder that has the name of the release.
func (r release) portableFiles(t target, program []byte) ([]file, error) {
	own, err := r.read(r.root, []source{
		{"LICENSE", "LICENSE", 0o644}, {"README.md", "README.md", 0o644}, {"README.es.md", "README.es.md", 0o644}, {"CHANGELOG.md", "CHANGELOG.md", 0o644},
		{"deploy/systemd/fiscalhub.service", "systemd/fiscalhub.service", 0o644}, {"deploy/systemd/fiscalhub.env", "systemd/fiscalhub.env", 0o644},
		{"deploy/postgres/roles.sql", "postgres/roles.sql", 0o644},
	})
	if err != nil {
		return nil, err
	}
	if t.system != "linux" {
		own = slices.DeleteFunc(own, func(f file) bool { return strings.HasPrefix(f.name, "systemd/") })
	}
	made, err := r.read(r.in, []source{
		{"LICENCES.txt", "LICENCES.txt", 0o644}, {"completion/bash", "completion/fiscalhub.bash", 0o644},
		{"completion/zsh", "completion/_fiscalhub", 0o644}, {"completion/fish", "completion/fiscalhub.fish", 0o644},
	})
	if err != nil {
		return nil, err
	}
	pages, err := r.manPages(func(base string) string { return "man/" + base })
	if err != nil {
		return nil, err
	}
	name := "fiscalhub"
	if t.system == "windows" {
		name += ".exe"
	}
	files := slices.Concat(own, made, pages, []file{{name: name, mode: 0o755, body: program}})
	for i := range files {
		files[i].name = fmt.Sprintf("fiscalhub-%s/%s", r.fileVersion(), files[i].name)
	}
	return withFolders(files), nil
}

// installedFiles are the files that a .deb and an .rpm put on a machine.
func (r release) installedFiles(program []byte) ([]file, error) {
	const docs = "usr/share/doc/fiscalhub/"
	own, err := r.read(r.root, []source{
		{"deploy/systemd/fiscalhub.service", "usr/lib/systemd/system/fiscalhub.service", 0o644},
		{"deploy/systemd/sysusers.conf", "usr/lib/sysusers.d/fiscalhub.conf", 0o644},
		{"deploy/systemd/fiscalhub-admin", "usr/sbin/fiscalhub-admin", 0o755},
		{"deploy/systemd/fiscalhub.env", "etc/fiscalhub/fiscalhub.env", 0o644},
		{"deploy/postgres/roles.sql", "usr/share/fiscalhub/roles.sql", 0o644},
		{"deploy/packages/copyright", docs + "copyright", 0o644},
		{"CHANGELOG.md", docs + "CHANGELOG.md", 0o644},
		{"deploy/systemd/fiscalhub-admin.8", "usr/share/man/man8/fiscalhub-admin.8", 0o644},
		{"deploy/packages/lintian-overrides", "usr/share/lintian/overrides/fiscalhub", 0o644},
	})
	if err != nil {
		return nil, err
	}
	made, err := r.read(r.in, []source{
		{"LICENCES.txt", docs + "LICENCES.txt", 0o644}, {"completion/bash", "usr/share/bash-completion/completions/fiscalhub", 0o644},
		{"completion/zsh", "usr/share/zsh/vendor-completions/_fiscalhub", 0o644}, {"completion/fish", "usr/share/fish/vendor_completions.d/fiscalhub.fish", 0o644},
	})
	if err != nil {
		return nil, err
	}
	pages, err := r.manPages(func(base string) string { return "usr/share/man/man1/" + base })
	if err != nil {
		return nil, err
	}
	files := slices.Concat(own, made, pages, []file{
		{name: "usr/bin/fiscalhub", mode: 0o755, body: program}, {name: "etc/fiscalhub", mode: fs.ModeDir | 0o755},
		{name: docs + "changelog", mode: 0o644, body: r.debChangelog()},
		{name: "usr/share/fiscalhub", mode: fs.ModeDir | 0o755}, {name: "usr/share/doc/fiscalhub", mode: fs.ModeDir | 0o755},
	})
	for i, f := range files {
		files[i].settings = f.name == "etc/fiscalhub/fiscalhub.env"
		files[i].doc = strings.HasPrefix(f.name, "usr/share/doc/") && !f.isDir() || strings.HasPrefix(f.name, "usr/share/man/")
		if files[i].doc && !strings.HasSuffix(f.name, "copyright") {
			if files[i].body, err = r.compress(f.body); err != nil {
				return nil, err
			}
			files[i].name += ".gz"
		}
	}
	return sorted(files), nil
}

// scripts are the shell scripts that a package manager runs.
type scripts struct{ afterInstall, beforeRemove, afterRemove string }

func (r release) readScripts() (s scripts, err error) {
	for name, to := range map[string]*string{"after-install.sh": &s.afterInstall, "before-remove.sh": &s.beforeRemove, "after-remove.sh": &s.afterRemove} {
		body, err := os.ReadFile(filepath.Join(r.root, "deploy", "packages", name))
		if err != nil {
			return s, err
		}
		*to = string(body)
	}
	return s, nil
}

// compress compresses bytes without a name and a time: small ones, like manual pages, as far
// as possible, and large ones fast.
func (r release) compress(body []byte) ([]byte, error) {
	level := gzip.BestCompression
	switch large := len(body) > 1<<20; {
	case large && r.fast:
		level = gzip.BestSpeed
	case large:
		level = gzip.DefaultCompression
	}
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, level)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(body); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

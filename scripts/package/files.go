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
	name string // without a slash at the start
	mode fs.FileMode
	body []byte
	uid  int
}

func (f file) isDir() bool { return f.mode.IsDir() }

// withFolders adds the folders that the files are in, and sorts all by name: each folder comes
// before its files.
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
	slices.SortFunc(all, func(a, b file) int { return strings.Compare(a.name, b.name) })
	return all
}

// read adds files to an archive, by their names in the archive.
func read(files []file, names map[string]string) ([]file, error) {
	for to, from := range names {
		body, err := os.ReadFile(from)
		if err != nil {
			return nil, err
		}
		files = append(files, file{name: to, mode: 0o644, body: body})
	}
	return files, nil
}

// portableFiles are the files of an archive, in one folder that has the name of the release.
func (r release) portableFiles(t target, program []byte) ([]file, error) {
	names := map[string]string{
		"LICENCES.txt":              r.in + "/LICENCES.txt",
		"completion/fiscalhub.bash": r.in + "/completion/bash",
		"completion/_fiscalhub":     r.in + "/completion/zsh",
		"completion/fiscalhub.fish": r.in + "/completion/fish",
		"postgres/roles.sql":        r.root + "/deploy/postgres/roles.sql",
	}
	for _, name := range []string{"LICENSE", "README.md", "README.es.md", "CHANGELOG.md"} {
		names[name] = r.root + "/" + name
	}
	if t.system == "linux" {
		for _, name := range []string{"systemd/fiscalhub.service", "systemd/fiscalhub.env"} {
			names[name] = r.root + "/deploy/" + name
		}
	}
	pages, err := filepath.Glob(r.in + "/man/*.1")
	if err != nil {
		return nil, err
	}
	if len(pages) == 0 {
		return nil, fmt.Errorf("%s/man has no manual pages", r.in)
	}
	for _, page := range pages {
		names["man/"+filepath.Base(page)] = page
	}
	name := "fiscalhub"
	if t.system == "windows" {
		name += ".exe"
	}
	files, err := read([]file{{name: name, mode: 0o755, body: program}}, names)
	for i := range files {
		files[i].name = fmt.Sprintf("fiscalhub-%s/%s", r.fileVersion(), files[i].name)
	}
	return withFolders(files), err
}

// compress compresses bytes without a name and a time.
func (r release) compress(body []byte) ([]byte, error) {
	level := gzip.DefaultCompression
	if r.fast {
		level = gzip.BestSpeed
	}
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, level)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(body); err != nil {
		return nil, err
	}
	err = w.Close()
	return b.Bytes(), err
}

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/fiscalhub/fiscalhub/internal/store"
)

// asTheService is what to do when this user may not read a file.
const asTheService = "Run this command as the user of the service."

// isOpenToOthers reports whether other users than the owner can open a file.
func isOpenToOthers(info fs.FileInfo) bool {
	return runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0
}

// isWritableByOthers reports whether other users can change a file, or replace files in a
// folder. In a sticky folder they can replace only their own files.
func isWritableByOthers(info fs.FileInfo) bool {
	return runtime.GOOS != "windows" && info.Mode().Perm()&0o022 != 0 && info.Mode()&fs.ModeSticky == 0
}

// sqlitePath returns the path of the database, and false when the database is a server.
func (d *doctor) sqlitePath() (string, bool) {
	return strings.CutPrefix(d.t.databaseAddress(), "sqlite:")
}

// dataFolders returns the folders of the database, the master key and the witness.
func (d *doctor) dataFolders() []string {
	all := []string{filepath.Clean(d.t.cli.Data), filepath.Dir(d.keys.File())}
	if path, ok := d.sqlitePath(); ok {
		all = append(all, filepath.Dir(path))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// folders checks that other users cannot replace files of the service.
func (d *doctor) folders(context.Context) []checkOutcome {
	var found []checkOutcome
	for _, folder := range d.dataFolders() {
		info, err := os.Stat(folder)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			found = append(found, failed("There is no folder "+folder+".", "Name the folder of the service with --data, or start a server, which creates it.")...)
		case err != nil:
			found = append(found, failed("The folder "+folder+" cannot be read: "+oneLine(err)+".", asTheService)...)
		case !info.IsDir():
			found = append(found, failed(folder+" is not a folder.", "Name the folder of the service with --data.")...)
		case isWritableByOthers(info):
			found = append(found, failed(fmt.Sprintf("Other users may replace files in the folder %s (mode %04o).", folder, info.Mode().Perm()),
				"Run chmod 700 "+folder+".")...)
		}
	}
	return orPassed(found, "Only the owner can add files to "+strings.Join(d.dataFolders(), ", ")+".")
}

// permissions checks that other users can open no file of the service.
func (d *doctor) permissions(context.Context) []checkOutcome {
	if runtime.GOOS == "windows" {
		return passed("Not checked: modes of files restrict nothing on Windows.")
	}
	var found []checkOutcome
	checked := 0
	for _, file := range d.privateFiles() {
		info, err := os.Stat(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		checked++
		switch {
		case err != nil:
			found = append(found, failed("The file "+file+" cannot be read: "+oneLine(err)+".", asTheService)...)
		case isOpenToOthers(info):
			found = append(found, failed(fmt.Sprintf("Other users may open %s (mode %04o).", file, info.Mode().Perm()),
				"Run chmod 600 "+file+". Rotate the secrets if a person who must not know them had access to this machine.")...)
		}
	}
	if checked == 0 {
		return warned("There are no files of the service.", "Name their folder with --data, or start a server, which creates them.")
	}
	return orPassed(found, "Only the owner can open "+plural(checked, "file", "files")+" with secrets, invoices or numbers.")
}

// privateFiles returns the files that only the owner may open. They need not exist.
func (d *doctor) privateFiles() []string {
	var files []string
	for _, prefix := range []string{d.keys.File(), filepath.Join(d.t.cli.Data, "witness-")} {
		entries, _ := os.ReadDir(filepath.Dir(prefix)) // the check of the folders reports the error
		for _, e := range entries {
			if strings.HasPrefix(e.Name(), filepath.Base(prefix)) && e.Type().IsRegular() {
				files = append(files, filepath.Join(filepath.Dir(prefix), e.Name()))
			}
		}
	}
	if d.tls.TLSKey != "" {
		files = append(files, d.tls.TLSKey)
	}
	if path, ok := d.sqlitePath(); ok {
		files = append(files, store.SQLiteFiles(path)...)
	}
	return files
}

// diskSpace checks the disks of the data folder and of the database.
func (d *doctor) diskSpace(context.Context) []checkOutcome {
	var found []checkOutcome
	var free []string
	for _, folder := range d.dataFolders() {
		bytes, known, err := freeSpace(folder)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			found = append(found, failed("The free space of "+folder+" is not known: "+oneLine(err)+".", "Check the disk.")...)
		case !known:
		case bytes < uint64(d.minFree): //nolint:gosec // a size is not negative
			found = append(found, failed(fmt.Sprintf("%d MiB are free for %s, and %d MiB are the least.", bytes>>20, folder, d.minFree>>20),
				"Free some space, or move the data: with a full disk the service answers creations with 503.")...)
		default:
			free = append(free, fmt.Sprintf("%d MiB are free for %s", bytes>>20, folder))
		}
	}
	if len(found) == 0 && len(free) == 0 {
		return warned("The free space is not known.", "Check the disk.")
	}
	return orPassed(found, strings.Join(free, ", ")+".")
}

// tlsCertificate checks the certificate of --tls-cert, if there is one.
func (d *doctor) tlsCertificate(context.Context) []checkOutcome {
	served, err := d.tls.certificate()
	switch {
	case err != nil:
		return failed("The TLS certificate of the service cannot be used: "+oneLine(err)+".", "Name the files of a certificate and its key with --tls-cert and --tls-key.")
	case served == nil:
		return passed("The service answers without TLS (--tls-cert): only a proxy on this machine or in a private network may reach it.")
	}
	end := served.current.Load().Leaf.NotAfter
	switch left := end.Sub(d.now()); {
	case left <= 0:
		return failed("The TLS certificate of the service expired on "+formatTime(end)+".", "Replace the files of --tls-cert and --tls-key; a running server reads them again.")
	case left < endsSoon:
		return warned("The TLS certificate of the service expires on "+formatTime(end)+".", "Replace the files of --tls-cert and --tls-key; a running server reads them again.")
	}
	return passed("The TLS certificate of the service is valid until " + formatTime(end) + ".")
}

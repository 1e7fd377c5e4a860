package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/fiscalhub/fiscalhub/internal/database"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/seal"
)

// asTheService is what to do when this user may not read a file.
func asTheService() lang.Message {
	return lang.Messagef("Run this command as the user of the service.", "Ejecute este comando con el usuario del servicio.")
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
	all := []string{filepath.Clean(d.t.cli.Data), filepath.Dir(d.keys.File()), filepath.Clean(d.flags.witnessFolder(d.t))}
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
			found = append(found, failed(lang.Messagef("There is no folder %s.",
				"No existe la carpeta %s.", folder), lang.Messagef("Name the folder of the service with --data, or start a server, which creates it.",
				"Indique la carpeta del servicio con --data, o inicie un servidor, que la crea."))...)
		case err != nil:
			found = append(found, failed(lang.Messagef("The folder %s cannot be read: %s.",
				"La carpeta %s no se puede leer: %s.", folder, err), asTheService())...)
		case !info.IsDir():
			found = append(found, failed(lang.Messagef("%s is not a folder.",
				"%s no es una carpeta.", folder), lang.Messagef("Name the folder of the service with --data.",
				"Indique la carpeta del servicio con --data."))...)
		case isWritableByOthers(info):
			found = append(found, failed(lang.Messagef("Other users may replace files in the folder %s (mode %04o).",
				"Otros usuarios pueden reemplazar archivos en la carpeta %s (modo %04o).", folder, info.Mode().Perm()),
				lang.Messagef("Run chmod 700 %s.", "Ejecute chmod 700 %s.", folder))...)
		}
	}
	return orPassed(found, lang.Messagef("Only the owner can add files to %s.",
		"Solo el dueño puede agregar archivos a %s.", strings.Join(d.dataFolders(), ", ")))
}

// permissions checks that other users can open no file of the service.
func (d *doctor) permissions(context.Context) []checkOutcome {
	if runtime.GOOS == "windows" {
		return passed(lang.Messagef("Not checked: modes of files restrict nothing on Windows.",
			"No se revisó: en Windows los modos de los archivos no restringen nada."))
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
			found = append(found, failed(lang.Messagef("The file %s cannot be read: %s.",
				"El archivo %s no se puede leer: %s.", file, err), asTheService())...)
		case seal.OpenToOthers(info):
			found = append(found, failed(lang.Messagef("Other users may open %s (mode %04o).",
				"Otros usuarios pueden abrir %s (modo %04o).", file, info.Mode().Perm()),
				lang.Messagef("Run chmod 600 %s. Rotate the secrets if a person who must not know them had access to this machine.",
					"Ejecute chmod 600 %s. Rote los secretos si una persona que no debe conocerlos tuvo acceso a esta máquina.", file))...)
		}
	}
	if checked == 0 {
		return warned(lang.Messagef("There are no files of the service.",
			"No hay archivos del servicio."), lang.Messagef("Name their folder with --data, or start a server, which creates them.",
			"Indique su carpeta con --data, o inicie un servidor, que los crea."))
	}
	return orPassed(found, lang.Messagef("Only the owner can open %s with secrets, invoices or numbers.",
		"Solo el dueño puede abrir %s con secretos, facturas o secuencias.", plural(checked, lang.Messagef("file", "archivo"), lang.Messagef("files", "archivos"))))
}

// privateFiles returns the files that only the owner may open. They need not exist.
func (d *doctor) privateFiles() []string {
	var files []string
	for _, prefix := range []string{d.keys.File(), filepath.Join(d.flags.witnessFolder(d.t), "witness-")} {
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
		files = append(files, database.SQLiteFiles(path)...)
	}
	return files
}

// diskSpace checks the disks of the data folder and of the database.
func (d *doctor) diskSpace(context.Context) []checkOutcome {
	var found []checkOutcome
	var free []lang.Message
	for _, folder := range d.dataFolders() {
		bytes, known, err := freeSpace(folder)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			found = append(found, failed(lang.Messagef("The free space of %s is not known: %s.",
				"No se conoce el espacio libre de %s: %s.", folder, err), lang.Messagef("Check the disk.", "Revise el disco."))...)
		case !known:
		case bytes < uint64(d.minFree): //nolint:gosec // a size is not negative
			found = append(found, failed(lang.Messagef("%d MiB are free for %s, and at least %d MiB are needed.",
				"Hay %d MiB libres para %s, y el mínimo es %d MiB.", bytes>>20, folder, d.minFree>>20),
				lang.Messagef("Free some space, or move the data: with a full disk the service answers creations with 503.",
					"Libere espacio o mueva los datos: con el disco lleno el servicio responde 503 a las creaciones."))...)
		default:
			free = append(free, lang.Messagef("%d MiB are free for %s", "hay %d MiB libres para %s", bytes>>20, folder))
		}
	}
	if len(found) == 0 && len(free) == 0 {
		return warned(lang.Messagef("The free space is not known.", "No se conoce el espacio libre."), lang.Messagef("Check the disk.",
			"Revise el disco."))
	}
	return orPassed(found, lang.Messagef("%s.", "%s.", lang.Join(free, ", ")))
}

// witness checks where the witness is. On the disk of the database it is lost together with
// it, and then only people know which numbers were used.
func (d *doctor) witness(context.Context) []checkOutcome {
	folder := d.flags.witnessFolder(d.t)
	file := d.flags.witnessFile(d.t, d.env)
	advice := lang.Messagef("Put it on another disk with --witness DIR: move the file while the service is stopped.",
		"Póngalo en otro disco con --witness DIR: mueva el archivo con el servicio detenido.")
	if d.flags.NoWitness {
		return warned(lang.Messagef("The service runs without a witness (--no-witness): after a restore of the database it may issue numbers a second time.",
			"El servicio funciona sin testigo (--no-witness): después de restaurar la base de datos puede emitir secuencias por segunda vez."),
			lang.Messagef("Use a witness outside of development.", "Use un testigo fuera del desarrollo."))
	}
	if _, err := os.Stat(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return failed(lang.Messagef("The witness %s cannot be read: %s.", "El testigo %s no se puede leer: %s.", file, err), asTheService())
	}
	if path, ok := d.sqlitePath(); ok {
		if same, known := sameDisk(folder, filepath.Dir(path)); known && same {
			return warned(lang.Messagef("The witness shares the disk of the database (%s): who loses one loses both.",
				"El testigo está en el disco de la base de datos (%s): quien pierde uno pierde los dos.", folder), advice)
		}
	}
	return passed(lang.Messagef("The witness is in %s, apart from the database.", "El testigo está en %s, aparte de la base de datos.", folder))
}

// tlsCertificate checks the certificate of --tls-cert, if there is one.
func (d *doctor) tlsCertificate(context.Context) []checkOutcome {
	served, err := d.tls.certificate()
	switch {
	case err != nil:
		return failed(lang.Messagef("The TLS certificate of the service cannot be used: %s.",
			"El certificado TLS del servicio no se puede usar: %s.", err), lang.Messagef("Name the files of a certificate and its key with --tls-cert and --tls-key.",
			"Indique los archivos de un certificado y su clave con --tls-cert y --tls-key."))
	case served == nil:
		return passed(lang.Messagef("The service answers without TLS (--tls-cert): only a proxy on this machine or in a private network may reach it.",
			"El servicio responde sin TLS (--tls-cert): solo un proxy en esta máquina o en una red privada puede alcanzarlo."))
	}
	end := served.current.Load().Leaf.NotAfter
	switch left := end.Sub(d.now()); {
	case left <= 0:
		return failed(lang.Messagef("The TLS certificate of the service expired on %s.",
			"El certificado TLS del servicio venció el %s.", formatTime(end)), lang.Messagef("Replace the files of --tls-cert and --tls-key; a running server reads them again.",
			"Reemplace los archivos de --tls-cert y --tls-key; un servidor en marcha los vuelve a leer."))
	case left < fiscal.EndsSoon:
		return warned(lang.Messagef("The TLS certificate of the service expires on %s.",
			"El certificado TLS del servicio vence el %s.", formatTime(end)), lang.Messagef("Replace the files of --tls-cert and --tls-key; a running server reads them again.",
			"Reemplace los archivos de --tls-cert y --tls-key; un servidor en marcha los vuelve a leer."))
	}
	return passed(lang.Messagef("The TLS certificate of the service is valid until %s.",
		"El certificado TLS del servicio es válido hasta el %s.", formatTime(end)))
}

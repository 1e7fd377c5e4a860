package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"

	"github.com/fiscalhub/fiscalhub/internal/access"
	"github.com/fiscalhub/fiscalhub/internal/audit"
	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/seal"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// masterKey checks that the master key opens the keys of the service.
func (d *doctor) masterKey(ctx context.Context) []checkOutcome {
	file := d.keys.File()
	if info, err := os.Stat(file); err == nil && seal.OpenToOthers(info) {
		return failed(lang.Messagef("Other users may open %s, so the service refuses it.",
			"Otros usuarios pueden abrir %s, así que el servicio lo rechaza.", file), lang.Messagef("Run chmod 600 %s, and rotate the key with fiscalhub master-key rotate if others had access.",
			"Ejecute chmod 600 %s, y rote la clave con fiscalhub master-key rotate si otros tuvieron acceso.", file))
	}
	ring, err := access.ReadKeyring(ctx, d.store, d.keys)
	switch {
	case errors.Is(err, access.ErrNoKeyring):
		return passed(lang.Messagef("The database has no keys yet; the first start of a server creates them.",
			"La base de datos todavía no tiene claves; el primer inicio de un servidor las crea."))
	case errors.Is(err, store.ErrDenied):
		return denied(err)
	case errors.Is(err, fs.ErrNotExist):
		return failed(lang.Messagef("The master key file %s is missing, and the database was created with one.",
			"Falta el archivo de la clave maestra %s, con la que se creó la base de datos.", file), lang.Messagef("Put the file back, or name it with --master-key. Without it all secrets of the database are lost.",
			"Devuelva el archivo a su lugar o indíquelo con --master-key. Sin él se pierden todos los secretos de la base de datos."))
	case errors.Is(err, fs.ErrPermission):
		return failed(lang.Messagef("The master key file cannot be read: %s.",
			"El archivo de la clave maestra no se puede leer: %s.", err), asTheService())
	case errors.Is(err, seal.ErrWrongKey):
		return failed(lang.Messagef("The master key is not that of the database: %s.",
			"La clave maestra no es la de la base de datos: %s.", err), lang.Messagef("Name the right file with --master-key, or put it back at %s.",
			"Indique el archivo correcto con --master-key, o devuélvalo a %s.", file))
	case err != nil:
		return failed(lang.Messagef("The keys of the service cannot be read: %s.",
			"Las claves del servicio no se pueden leer: %s.", err), lang.Messagef("Restore the master key file or the database from a copy.",
			"Restaure el archivo de la clave maestra o la base de datos desde una copia."))
	}
	d.ring = ring
	needs, err := access.MasterKeyID(ctx, d.store)
	if err != nil {
		return failed(lang.Messagef("The id of the master key cannot be read: %s.",
			"El id de la clave maestra no se puede leer: %s.", err), lang.Messagef("Check the database.",
			"Revise la base de datos."))
	}
	if m, err := seal.Load(file); err != nil || m.ID() != needs {
		return warned(lang.Messagef("The key is in %s, but not in %s: a rotation was interrupted, or an older copy was restored.",
			"La clave está en %s, pero no en %s: se interrumpió una rotación o se restauró una copia anterior.", d.keys.FileOf(needs), file),
			lang.Messagef("Run any other command that uses keys, for example fiscalhub keys rotate cursor: it writes the file again.",
				"Ejecute otro comando que use claves, por ejemplo fiscalhub keys rotate cursor: escribe el archivo otra vez."))
	}
	versions, err := access.KeyVersions(ctx, d.store)
	if err != nil {
		return failed(lang.Messagef("The versions of the keys cannot be read: %s.",
			"Las versiones de las claves no se pueden leer: %s.", err), lang.Messagef("Check the database.",
			"Revise la base de datos."))
	}
	return passed(lang.Messagef("%s opens %s of the service.",
		"%s abre %s del servicio.", file, plural(len(versions), lang.Messagef("key", "clave"), lang.Messagef("keys", "claves"))))
}

// credentials checks that no credential was changed in the database.
func (d *doctor) credentials(ctx context.Context) []checkOutcome {
	altered, err := d.ring.Altered(ctx)
	if err != nil {
		return failed(lang.Messagef("The credentials cannot be read: %s.",
			"Las credenciales no se pueden leer: %s.", err), lang.Messagef("Check the database.",
			"Revise la base de datos."))
	}
	if len(altered) > 0 {
		return failed(lang.Messagef("%s changed in the database, or created by an earlier release: %s.",
			"%s en la base de datos, o creadas por una versión anterior: %s.",
			plural(len(altered), lang.Messagef("credential was", "credencial alterada"), lang.Messagef("credentials were", "credenciales alteradas")),
			firstFew(mapEach(altered, func(c store.Credential) string { return c.ID }))),
			lang.Messagef("Revoke them with fiscalhub credential revoke, and find out who can write to the database.",
				"Revóquelas con fiscalhub credential revoke y averigüe quién puede escribir en la base de datos."))
	}
	return passed(lang.Messagef("The bindings of all usable credentials are valid.",
		"Los vínculos de todas las credenciales utilizables son válidos."))
}

// auditLog verifies the audit log and its checkpoints.
func (d *doctor) auditLog(ctx context.Context) []checkOutcome {
	head, checkpoints, err := d.ring.VerifyAudit(ctx)
	var broken *audit.BrokenError
	switch {
	case ctx.Err() != nil:
		return warned(lang.Messagef("The audit log is too long to be verified within %s.",
			"El registro de auditoría es demasiado largo para verificarlo en %s.", checkTime), lang.Messagef("Run fiscalhub audit verify.",
			"Ejecute fiscalhub audit verify."))
	case errors.As(err, &broken) || errors.Is(err, audit.ErrCheckpoint):
		return failed(lang.Messagef("The audit log was changed: %s.",
			"El registro de auditoría fue alterado: %s.", err), lang.Messagef("Find out who can write to the database.",
			"Averigüe quién puede escribir en la base de datos."))
	case err != nil:
		return failed(lang.Messagef("The audit log cannot be read: %s.",
			"El registro de auditoría no se puede leer: %s.", err), lang.Messagef("Check the database.",
			"Revise la base de datos."))
	}
	return passed(lang.Messagef("The audit log is complete and unchanged: %s, %s.",
		"El registro de auditoría está completo y sin cambios: %s, %s.", plural(int(head.Seq), lang.Messagef("entry", "entrada"), lang.Messagef("entries", "entradas")), plural(checkpoints, lang.Messagef("checkpoint", "punto de control"), lang.Messagef("checkpoints", "puntos de control"))))
}

// firstFew returns the first names of a list.
func firstFew(names []string) string {
	const most = 3
	if len(names) > most {
		return strings.Join(names[:most], ", ") + ", …"
	}
	return strings.Join(names, ", ")
}

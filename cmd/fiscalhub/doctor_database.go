package main

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"strings"

	"github.com/fiscalhub/fiscalhub/internal/access"
	"github.com/fiscalhub/fiscalhub/internal/audit"
	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/seal"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// connect opens the database to read it. Opening also checks the settings that durability
// depends on.
func (d *doctor) connect(ctx context.Context) []checkOutcome {
	s, err := store.Open(ctx, d.t.databaseAddress(), store.Options{Now: d.now, Log: slog.New(slog.DiscardHandler), ReadOnly: true})
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return failed(lang.Messagef("There is no database: %s.",
			"No hay base de datos: %s.", err), lang.Messagef("Name it with --data or --database, or start a server, which creates it.",
			"Indíquela con --data o --database, o inicie un servidor, que la crea."))
	case errors.Is(err, store.ErrDenied):
		return denied(err)
	case errors.Is(err, store.ErrNotMigrated):
		return failed(lang.Messagef("The database misses a migration of this version: %s.",
			"A la base de datos le falta una migración de esta versión: %s.", err), lang.Messagef("Run fiscalhub migrate with a role that may change tables.",
			"Ejecute fiscalhub migrate con un rol que pueda cambiar tablas."))
	case errors.Is(err, store.ErrUnavailable):
		action := lang.Messagef("Start the database, and check the address in --database, the network and the firewall.",
			"Inicie la base de datos y revise la dirección de --database, la red y el cortafuegos.")
		if _, ok := d.sqlitePath(); ok {
			action = lang.Messagef("%s Check the modes of the files and the disk.", "%s Revise los modos de los archivos y el disco.", asTheService())
		}
		return failed(lang.Messagef("The database does not answer: %s.", "La base de datos no responde: %s.", err), action)
	case err != nil:
		return failed(lang.Messagef("The database cannot be used: %s.",
			"La base de datos no se puede usar: %s.", err), lang.Messagef("Do what the message says, or restore the database from a backup.",
			"Haga lo que dice el mensaje, o restaure la base de datos desde una copia."))
	}
	d.store = s
	version, err := s.SchemaVersion(ctx)
	if err != nil {
		return unread(lang.Messagef("The version of the tables cannot be read: %s.", "La versión de las tablas no se puede leer: %s.", err))
	}
	return passed(lang.Messagef("The %s database answers and has the tables of version %d.",
		"La base de datos %s responde y tiene las tablas de la versión %d.", s.Engine(), version))
}

// settings checks the settings that a failure of a machine or of a disk depends on.
func (d *doctor) settings(ctx context.Context) []checkOutcome {
	if path, ok := d.sqlitePath(); ok {
		if kind := networkDisk(path); kind != "" {
			return failed(lang.Messagef("The database is on a network disk (%s), whose locks do not protect it.",
				"La base de datos está en un disco de red (%s), cuyos bloqueos no la protegen.", kind), lang.Messagef("Move the data folder to a local disk, or use PostgreSQL.",
				"Mueva la carpeta de datos a un disco local, o use PostgreSQL."))
		}
		return passed(lang.Messagef("The database is on a local disk, and every commit is written to it (WAL, synchronous=FULL).",
			"La base de datos está en un disco local y cada confirmación se escribe en él (WAL, synchronous=FULL)."))
	}
	safe := lang.Messagef("fsync, full_page_writes and synchronous_commit are on", "fsync, full_page_writes y synchronous_commit están activos")
	r, err := d.store.Replication(ctx)
	switch {
	case err != nil:
		return failed(lang.Messagef("The standbys of the server cannot be read: %s.",
			"Las réplicas del servidor no se pueden leer: %s.", err), lang.Messagef("Check the database server.",
			"Revise el servidor de base de datos."))
	case !r.Known:
		return warned(lang.Messagef("%s, but this role cannot see whether the standbys are synchronous.",
			"%s, pero este rol no puede ver si las réplicas son síncronas.", safe), lang.Messagef("Grant pg_read_all_stats to the role, as deploy/postgres/roles.sql does.",
			"Otorgue pg_read_all_stats al rol, como hace deploy/postgres/roles.sql."))
	case r.Standbys > 0 && r.Synchronous == 0:
		return warned(lang.Messagef("%s, but none of the %d standbys is synchronous: a failover can lose commits.",
			"%s, pero ninguna de las %d réplicas es síncrona: un cambio de servidor puede perder confirmaciones.", safe, r.Standbys), lang.Messagef("Set synchronous_standby_names on the server.",
			"Configure synchronous_standby_names en el servidor."))
	}
	return passed(lang.Messagef("%s; %d of %d standbys are synchronous.", "%s; %d de %d réplicas son síncronas.", safe, r.Synchronous, r.Standbys))
}

// role checks that the role of the service cannot change tables, and that a connection to
// another machine is encrypted.
func (d *doctor) role(ctx context.Context) []checkOutcome {
	if !d.store.Shared() {
		return passed(lang.Messagef("SQLite has no roles: the modes of its files decide who can open it.",
			"SQLite no tiene roles: los modos de sus archivos deciden quién puede abrirla."))
	}
	session, err := d.store.Session(ctx)
	if err != nil {
		return failed(lang.Messagef("The rights of the role cannot be read: %s.",
			"Los permisos del rol no se pueden leer: %s.", err), lang.Messagef("Check the database server.", "Revise el servidor de base de datos."))
	}
	var found []checkOutcome
	if session.ChangesTables {
		found = append(found, warned(lang.Messagef("The role %s may change tables, and the service does not need that right.",
			"El rol %s puede cambiar tablas, y el servicio no necesita ese permiso.", session.Role),
			lang.Messagef("Run deploy/postgres/roles.sql, and let the service use the role fiscalhub_service.",
				"Ejecute deploy/postgres/roles.sql y haga que el servicio use el rol fiscalhub_service."))...)
	}
	if !session.Local && !session.Encrypted {
		found = append(found, warned(lang.Messagef("The connection to the database server has no TLS.",
			"La conexión al servidor de base de datos no tiene TLS."), lang.Messagef("Add sslmode=verify-full to the address in --database.",
			"Agregue sslmode=verify-full a la dirección de --database."))...)
	}
	return orPassed(found, lang.Messagef("The role %s cannot change tables.", "El rol %s no puede cambiar tablas.", session.Role))
}

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
		return unread(lang.Messagef("The id of the master key cannot be read: %s.", "El id de la clave maestra no se puede leer: %s.", err))
	}
	if m, err := seal.Load(file); err != nil || m.ID() != needs {
		return warned(lang.Messagef("The key is in %s, but not in %s: a rotation was interrupted, or an older copy was restored.",
			"La clave está en %s, pero no en %s: se interrumpió una rotación o se restauró una copia anterior.", d.keys.FileOf(needs), file),
			lang.Messagef("Run any other command that uses keys, for example fiscalhub keys rotate cursor: it writes the file again.",
				"Ejecute otro comando que use claves, por ejemplo fiscalhub keys rotate cursor: escribe el archivo otra vez."))
	}
	versions, err := access.KeyVersions(ctx, d.store)
	if err != nil {
		return unread(lang.Messagef("The versions of the keys cannot be read: %s.", "Las versiones de las claves no se pueden leer: %s.", err))
	}
	return passed(lang.Messagef("%s opens %s of the service.",
		"%s abre %s del servicio.", file, plural(len(versions), lang.Messagef("key", "clave"), lang.Messagef("keys", "claves"))))
}

// credentials checks that no credential was changed in the database.
func (d *doctor) credentials(ctx context.Context) []checkOutcome {
	altered, err := d.ring.Altered(ctx)
	if err != nil {
		return unread(lang.Messagef("The credentials cannot be read: %s.", "Las credenciales no se pueden leer: %s.", err))
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
		return unread(lang.Messagef("The audit log cannot be read: %s.", "El registro de auditoría no se puede leer: %s.", err))
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

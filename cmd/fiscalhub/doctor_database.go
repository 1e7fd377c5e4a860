package main

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"

	"github.com/fiscalhub/fiscalhub/internal/lang"
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
			action = lang.Messagef("%s Check the modes of the files and the disk.",
				"%s Revise los modos de los archivos y el disco.", asTheService())
		}
		return failed(lang.Messagef("The database does not answer: %s.",
			"La base de datos no responde: %s.", err), action)
	case err != nil:
		return failed(lang.Messagef("The database cannot be used: %s.",
			"La base de datos no se puede usar: %s.", err), lang.Messagef("Do what the message says, or restore the database from a backup.",
			"Haga lo que dice el mensaje, o restaure la base de datos desde una copia."))
	}
	d.store = s
	version, err := s.SchemaVersion(ctx)
	if err != nil {
		return failed(lang.Messagef("The version of the tables cannot be read: %s.",
			"La versión de las tablas no se puede leer: %s.", err), lang.Messagef("Check the database.",
			"Revise la base de datos."))
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
	safe := lang.Messagef("fsync, full_page_writes and synchronous_commit are on",
		"fsync, full_page_writes y synchronous_commit están activos")
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
	return passed(lang.Messagef("%s; %d of %d standbys are synchronous.",
		"%s; %d de %d réplicas son síncronas.", safe, r.Synchronous, r.Standbys))
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
			"Los permisos del rol no se pueden leer: %s.", err), lang.Messagef("Check the database server.",
			"Revise el servidor de base de datos."))
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
	return orPassed(found, lang.Messagef("The role %s cannot change tables.",
		"El rol %s no puede cambiar tablas.", session.Role))
}

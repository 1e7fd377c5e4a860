package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"

	"github.com/fiscalhub/fiscalhub/internal/store"
)

// connect opens the database to read it. Opening also checks the settings that durability
// depends on.
func (d *doctor) connect(ctx context.Context) []checkOutcome {
	s, err := store.Open(ctx, d.t.databaseAddress(), store.Options{Now: d.now, Log: slog.New(slog.DiscardHandler), ReadOnly: true})
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return failed("There is no database: "+oneLine(err)+".", "Name it with --data or --database, or start a server, which creates it.")
	case errors.Is(err, store.ErrDenied):
		return denied(err)
	case errors.Is(err, store.ErrNotMigrated):
		return failed("The database misses a migration of this version: "+oneLine(err)+".", "Run fiscalhub migrate with a role that may change tables.")
	case errors.Is(err, store.ErrUnavailable):
		action := "Start the database, and check the address in --database, the network and the firewall."
		if _, ok := d.sqlitePath(); ok {
			action = asTheService + " Check the modes of the files and the disk."
		}
		return failed("The database does not answer: "+oneLine(err)+".", action)
	case err != nil:
		return failed("The database cannot be used: "+oneLine(err)+".", "Do what the message says, or restore the database from a backup.")
	}
	d.store = s
	version, err := s.SchemaVersion(ctx)
	if err != nil {
		return failed("The version of the tables cannot be read: "+oneLine(err)+".", "Check the database.")
	}
	return passed(fmt.Sprintf("The %s database answers and has the tables of version %d.", s.Engine(), version))
}

// settings checks the settings that a failure of a machine or of a disk depends on.
func (d *doctor) settings(ctx context.Context) []checkOutcome {
	if path, ok := d.sqlitePath(); ok {
		if kind := networkDisk(path); kind != "" {
			return failed("The database is on a network disk ("+kind+"), whose locks do not protect it.", "Move the data folder to a local disk, or use PostgreSQL.")
		}
		return passed("The database is on a local disk, and every commit is written to it (WAL, synchronous=FULL).")
	}
	const safe = "fsync, full_page_writes and synchronous_commit are on"
	r, err := d.store.Replication(ctx)
	switch {
	case err != nil:
		return failed("The standbys of the server cannot be read: "+oneLine(err)+".", "Check the database server.")
	case !r.Known:
		return warned(safe+", but this role cannot see whether the standbys are synchronous.", "Grant pg_read_all_stats to the role, as deploy/postgres/roles.sql does.")
	case r.Standbys > 0 && r.Synchronous == 0:
		return warned(fmt.Sprintf("%s, but none of the %d standbys is synchronous: a failover can lose commits.", safe, r.Standbys), "Set synchronous_standby_names on the server.")
	}
	return passed(fmt.Sprintf("%s; %d of %d standbys are synchronous.", safe, r.Synchronous, r.Standbys))
}

// role checks that the role of the service cannot change tables, and that a connection to
// another machine is encrypted.
func (d *doctor) role(ctx context.Context) []checkOutcome {
	if !d.store.Shared() {
		return passed("SQLite has no roles: the modes of its files decide who can open it.")
	}
	session, err := d.store.Session(ctx)
	if err != nil {
		return failed("The rights of the role cannot be read: "+oneLine(err)+".", "Check the database server.")
	}
	var found []checkOutcome
	if session.ChangesTables {
		found = append(found, warned("The role "+session.Role+" may change tables, and the service does not need that right.",
			"Run deploy/postgres/roles.sql, and let the service use the role fiscalhub_service.")...)
	}
	if !session.Local && !session.Encrypted {
		found = append(found, warned("The connection to the database server has no TLS.", "Add sslmode=verify-full to the address in --database.")...)
	}
	return orPassed(found, "The role "+session.Role+" cannot change tables.")
}

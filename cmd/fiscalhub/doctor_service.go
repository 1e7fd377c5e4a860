package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/fiscalhub/fiscalhub/internal/access"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

var errNoDatabase = errors.New("not checked, because the database cannot be opened")

// permissions checks that other users can open no file of the service. It runs before the
// database is opened, because that narrows the modes of its files.
func (d *doctor) permissions() (string, error) {
	if runtime.GOOS == "windows" {
		return "not checked on Windows", nil
	}
	info, err := os.Stat(d.t.cli.Data)
	if err != nil {
		return "", fmt.Errorf("the data folder: %w; name it with --data", err)
	}
	if mode := info.Mode().Perm(); mode&0o022 != 0 {
		return "", fmt.Errorf("other users may write to the data folder %s (mode %04o): run chmod 700 %s", d.t.cli.Data, mode, d.t.cli.Data)
	}
	files, err := d.privateFiles()
	if err != nil {
		return "", err
	}
	checked := 0
	for _, file := range files {
		info, err := os.Stat(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return "", err
		}
		checked++
		if mode := info.Mode().Perm(); mode&0o077 != 0 {
			return "", fmt.Errorf("other users may open %s (mode %04o): run chmod 600 %s, and rotate the secrets if a person who must not know them had access to this machine", file, mode, file)
		}
	}
	return fmt.Sprintf("only the owner can open the %d files of the service", checked), nil
}

// privateFiles returns the files that only the owner may open. They need not exist.
func (d *doctor) privateFiles() ([]string, error) {
	files, err := filepath.Glob(d.t.masterKeys().File() + "*")
	if err != nil {
		return nil, err
	}
	witnesses, err := filepath.Glob(filepath.Join(d.t.cli.Data, "witness-*"))
	if err != nil {
		return nil, err
	}
	files = append(files, witnesses...)
	if path, ok := strings.CutPrefix(d.t.databaseAddress(), "sqlite:"); ok {
		files = append(files, store.SQLiteFiles(path)...)
	}
	return files, nil
}

// minDiskSpace is the free space below which the check of the disk fails.
const minDiskSpace = 512 << 20

// diskSpace checks the disk of the data folder.
func (d *doctor) diskSpace() (string, error) {
	free, known, err := freeSpace(d.t.cli.Data)
	switch {
	case err != nil:
		return "", fmt.Errorf("the disk of %s: %w", d.t.cli.Data, err)
	case !known:
		return "not checked on this system", nil
	case free < minDiskSpace:
		return "", fmt.Errorf("%d MiB are free on the disk of %s: a full disk makes the service answer 503; free some space, or move the data", free>>20, d.t.cli.Data)
	}
	return fmt.Sprintf("%d MiB are free on the disk of the data folder", free>>20), nil
}

// database opens the database, which checks the settings that durability depends on. It
// does not create one.
func (d *doctor) database() (string, error) {
	if path, ok := strings.CutPrefix(d.t.databaseAddress(), "sqlite:"); ok {
		if _, err := os.Stat(path); err != nil {
			return "", fmt.Errorf("there is no database: %w; name it with --data or --database, or start a server, which creates it", err)
		}
	}
	s, err := d.t.openStore()
	if err != nil {
		return "", err
	}
	d.store = s
	version, err := s.SchemaVersion(d.t.ctx)
	if err != nil {
		return "", err
	}
	r, err := s.Replication(d.t.ctx)
	switch {
	case err != nil:
		return "", err
	case !r.Known:
		return "", errors.New("the role cannot see whether the standbys are synchronous: grant it pg_monitor")
	case r.Standbys > 0 && r.Synchronous == 0:
		return "", fmt.Errorf("%d standbys, and none is synchronous: a failover may lose commits; set synchronous_standby_names", r.Standbys)
	}
	return fmt.Sprintf("%s with the schema version %d; its settings are safe", s.Engine(), version), nil
}

// masterKey checks that the master key opens the keys of the service.
func (d *doctor) masterKey() (string, error) {
	if d.store == nil {
		return "", errNoDatabase
	}
	versions, err := access.KeyVersions(d.t.ctx, d.store)
	if err != nil {
		return "", err
	}
	if len(versions) == 0 {
		return "the database has no keys yet; the first start of a server creates them", nil
	}
	keys := d.t.masterKeys()
	ring, err := access.LoadKeyring(d.t.ctx, d.store, keys)
	if err != nil {
		return "", explainMissingKey(err, keys)
	}
	d.ring = ring
	return fmt.Sprintf("%s opens the %d keys of the service", keys.File(), len(versions)), nil
}

// credentials checks that no credential was changed in the database.
func (d *doctor) credentials() (string, error) {
	altered, err := d.ring.Altered(d.t.ctx)
	if err != nil {
		return "", err
	}
	if len(altered) > 0 {
		return "", fmt.Errorf("%d credentials were changed in the database, or an earlier release has created them after the upgrade: %s; revoke them, and find out who can write to the database",
			len(altered), firstFew(mapEach(altered, func(c store.Credential) string { return c.ID })))
	}
	return "the bindings of all usable credentials are valid", nil
}

// auditLog verifies the audit log and its checkpoints.
func (d *doctor) auditLog() (string, error) {
	marks, err := d.store.AuditCheckpoints(d.t.ctx)
	if err != nil {
		return "", err
	}
	for _, mark := range marks {
		if err := d.ring.VerifyCheckpoint(mark); err != nil {
			return "", fmt.Errorf("checkpoint of %d entries: %w", mark.Seq, err)
		}
	}
	head, err := d.store.VerifyAudit(d.t.ctx, marks)
	if err != nil {
		return "", fmt.Errorf("%w; find out who can write to the database", err)
	}
	return fmt.Sprintf("complete and unchanged: %d entries, %d checkpoints", head.Seq, len(marks)), nil
}

// firstFew returns the first names of a list.
func firstFew(names []string) string {
	const most = 3
	if len(names) > most {
		return strings.Join(names[:most], ", ") + ", …"
	}
	return strings.Join(names, ", ")
}

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/fiscalhub/fiscalhub/internal/access"
	"github.com/fiscalhub/fiscalhub/internal/seal"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// masterKey checks that the master key opens the keys of the service.
func (d *doctor) masterKey(ctx context.Context) []checkOutcome {
	file := d.keys.File()
	if info, err := os.Stat(file); err == nil && isOpenToOthers(info) {
		return failed("Other users may open "+file+", so the service refuses it.", "Run chmod 600 "+file+", and rotate the key with fiscalhub master-key rotate if others had access.")
	}
	ring, err := access.ReadKeyring(ctx, d.store, d.keys)
	switch {
	case errors.Is(err, access.ErrNoKeyring):
		return passed("The database has no keys yet; the first start of a server creates them.")
	case errors.Is(err, store.ErrDenied):
		return denied(err)
	case errors.Is(err, fs.ErrNotExist):
		return failed("The master key file "+file+" is missing, and the database was created with one.", "Put the file back, or name it with --master-key. Without it all secrets of the database are lost.")
	case errors.Is(err, fs.ErrPermission):
		return failed("The master key file cannot be read: "+oneLine(err)+".", asTheService)
	case errors.Is(err, seal.ErrWrongKey):
		return failed("The master key is not that of the database: "+oneLine(err)+".", "Name the right file with --master-key, or put it back at "+file+".")
	case err != nil:
		return failed("The keys of the service cannot be read: "+oneLine(err)+".", "Restore the master key file or the database from a copy.")
	}
	d.ring = ring
	needs, err := access.MasterKeyID(ctx, d.store)
	if err != nil {
		return failed("The id of the master key cannot be read: "+oneLine(err)+".", "Check the database.")
	}
	if m, err := seal.Load(file); err != nil || m.ID() != needs {
		return warned("The key is in "+d.keys.FileOf(needs)+", but not in "+file+": a rotation was interrupted, or an older copy was restored.",
			"Run any other command that uses keys, for example fiscalhub keys rotate cursor: it writes the file again.")
	}
	versions, err := access.KeyVersions(ctx, d.store)
	if err != nil {
		return failed("The versions of the keys cannot be read: "+oneLine(err)+".", "Check the database.")
	}
	return passed(file + " opens " + plural(len(versions), "key", "keys") + " of the service.")
}

// credentials checks that no credential was changed in the database.
func (d *doctor) credentials(ctx context.Context) []checkOutcome {
	altered, err := d.ring.Altered(ctx)
	if err != nil {
		return failed("The credentials cannot be read: "+oneLine(err)+".", "Check the database.")
	}
	if len(altered) > 0 {
		return failed(plural(len(altered), "credential was", "credentials were")+" changed in the database, or created by an earlier release: "+
			firstFew(mapEach(altered, func(c store.Credential) string { return c.ID }))+".",
			"Revoke them with fiscalhub credential revoke, and find out who can write to the database.")
	}
	return passed("The bindings of all usable credentials are valid.")
}

// auditLog verifies the audit log and its checkpoints.
func (d *doctor) auditLog(ctx context.Context) []checkOutcome {
	marks, err := d.store.AuditCheckpoints(ctx)
	if err != nil {
		return failed("The checkpoints of the audit log cannot be read: "+oneLine(err)+".", "Check the database.")
	}
	for _, mark := range marks {
		if err := d.ring.VerifyCheckpoint(mark); err != nil {
			return failed(fmt.Sprintf("The checkpoint of %d entries is not valid: %s.", mark.Seq, oneLine(err)), "Find out who can write to the database.")
		}
	}
	head, err := d.store.VerifyAudit(ctx, marks)
	switch {
	case ctx.Err() != nil:
		return warned("The audit log is too long to be verified within "+checkTime.String()+".", "Run fiscalhub audit verify.")
	case err != nil:
		return failed("The audit log was changed: "+oneLine(err)+".", "Find out who can write to the database.")
	}
	return passed("The audit log is complete and unchanged: " + plural(int(head.Seq), "entry", "entries") + ", " + plural(len(marks), "checkpoint", "checkpoints") + ".")
}

// firstFew returns the first names of a list.
func firstFew(names []string) string {
	const most = 3
	if len(names) > most {
		return strings.Join(names[:most], ", ") + ", …"
	}
	return strings.Join(names, ", ")
}

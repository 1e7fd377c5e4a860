package access

import (
	"errors"
	"testing"

	"github.com/fiscalhub/fiscalhub/internal/audit"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// A checkpoint is stored when the log has grown. The next one verifies what was added since
// then, and is not signed when an entry or the last checkpoint was tampered with.
func TestStoreCheckpoint(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e *env) {
		want := func(when string, stored bool) {
			t.Helper()
			if got, err := e.ring.StoreCheckpoint(t.Context()); err != nil || got != stored {
				t.Errorf("%s: %v, %v; want %v", when, got, err, stored)
			}
		}
		want("after the first changes", true)
		want("without a change", false)
		_, made := e.issue(e.terms())
		want("after another change", true)
		marks, err := e.store.AuditCheckpoints(t.Context())
		e.must(err)
		if len(marks) != 2 || e.ring.VerifyCheckpoint(marks[1]) != nil {
			t.Errorf("stored %+v", marks)
		}
		if head, err := e.store.VerifyAudit(t.Context(), marks); err != nil || head.Seq != marks[1].Seq {
			t.Errorf("the log: %+v, %v", head, err)
		}
		for _, statement := range map[string][]string{
			"sqlite":   {`DROP TRIGGER audit_entries_no_update`, `DROP TRIGGER audit_checkpoints_no_update`},
			"postgres": {`DROP TRIGGER audit_entries_append_only ON audit_entries`, `DROP TRIGGER audit_checkpoints_append_only ON audit_checkpoints`},
		}[e.store.Engine()] {
			e.execute(statement)
		}
		e.must(e.Revoke(t.Context(), made.ID))
		e.execute(`UPDATE audit_entries SET actor = 'eva' WHERE seq = $1`, marks[1].Seq+1)
		var broken *audit.BrokenError
		if _, err := e.ring.StoreCheckpoint(t.Context()); !errors.As(err, &broken) || broken.Seq != marks[1].Seq+1 {
			t.Errorf("with a changed entry: %v", err)
		}
		e.execute(`UPDATE audit_entries SET actor = $1 WHERE seq = $2`, audit.System, marks[1].Seq+1)
		e.execute(`UPDATE audit_checkpoints SET at = 'now' WHERE seq = $1`, marks[1].Seq)
		if _, err := e.ring.StoreCheckpoint(t.Context()); !errors.Is(err, audit.ErrCheckpoint) {
			t.Errorf("with a changed checkpoint: %v", err)
		}
	})
}

// A chain that somebody has computed again contradicts the stored checkpoints: it gets no new
// one. A false checkpoint does not hide which entry is wrong.
func TestVerifyAuditUsesTheStoredCheckpoints(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e *env) {
		_, err := e.ring.StoreCheckpoint(t.Context())
		e.must(err)
		if last, marks, err := e.ring.VerifyAudit(t.Context()); err != nil || marks != 1 || last.Seq == 0 {
			t.Fatalf("the log: %+v, %d checkpoints, %v", last, marks, err)
		}
		for _, statement := range map[string][]string{
			"sqlite":   {`DROP TRIGGER audit_entries_no_update`},
			"postgres": {`DROP TRIGGER audit_entries_append_only ON audit_entries`},
		}[e.store.Engine()] {
			e.execute(statement)
		}
		e.execute(`INSERT INTO audit_checkpoints (seq, hash, at, signature) VALUES (0, $1, 'now', $1)`, make([]byte, 64))
		if _, _, err := e.ring.VerifyAudit(t.Context()); !errors.Is(err, audit.ErrCheckpoint) {
			t.Errorf("with a false checkpoint: %v", err)
		}
		// Somebody changes the first entry, and computes the chain again.
		entries, err := e.store.AuditEntries(t.Context(), store.AuditFilter{}, 0, 1000)
		e.must(err)
		previous := audit.Start()
		for i, one := range entries {
			if i == 0 {
				one.Caller.Actor = "eva"
			}
			previous = one.ChainHash(previous)
			e.execute(`UPDATE audit_entries SET actor = $1, hash = $2 WHERE seq = $3`, one.Caller.Actor, previous, one.Seq)
		}
		e.execute(`UPDATE audit_head SET hash = $1`, previous)
		var broken *audit.BrokenError
		if _, _, err := e.ring.VerifyAudit(t.Context()); !errors.As(err, &broken) || broken.Seq != int64(len(entries)) {
			t.Errorf("with another chain: %v", err)
		}
	})
}

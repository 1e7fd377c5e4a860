package access

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/audit"
	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// checkpointEvery is the time between two checkpoints of the audit log.
const checkpointEvery = 5 * time.Minute

// RunCheckpoints stores a checkpoint every 5 minutes until ctx ends.
func (k *Keyring) RunCheckpoints(ctx context.Context, log *slog.Logger) {
	tick := time.NewTicker(checkpointEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		_, err := k.StoreCheckpoint(ctx)
		var broken *audit.BrokenError
		switch {
		case err == nil || ctx.Err() != nil:
		case errors.As(err, &broken) || errors.Is(err, audit.ErrCheckpoint):
			log.Error("Entries of the audit log were changed after they were written. No checkpoint is signed. Run fiscalhub audit verify, and find out who can write to the database.", "error", err.Error())
		default:
			log.Warn("Cannot store a checkpoint of the audit log. The next attempt is in 5 minutes.", "error", err.Error())
		}
	}
}

// StoreCheckpoint signs the end of the audit log and stores the checkpoint, if the log has
// grown since the last one. It reports whether it has. It first verifies the entries
// since then: it fails with a *audit.BrokenError when one of them is wrong, and with
// audit.ErrCheckpoint when the last checkpoint was not signed by this service.
func (k *Keyring) StoreCheckpoint(ctx context.Context) (bool, error) {
	from := audit.Head{Hash: audit.Start()}
	last, err := k.store.LatestAuditCheckpoint(ctx)
	switch {
	case err == nil:
		if err := k.VerifyCheckpoint(last); err != nil {
			return false, fmt.Errorf("checkpoint of %d entries: %w", last.Seq, err)
		}
		from = audit.Head{Seq: last.Seq, Hash: last.Hash}
	case !errors.Is(err, store.ErrNotFound):
		return false, err
	}
	head, err := k.store.VerifyAuditFrom(ctx, from)
	if err != nil || head.Seq == from.Seq {
		return false, err
	}
	mark := audit.NewCheckpoint(k.Audit(), head, k.store.Now())
	err = k.store.Update(ctx, func(tx *store.Tx) error { return tx.AddAuditCheckpoint(ctx, mark) })
	return err == nil, err
}

// VerifyAudit verifies the whole audit log against the stored checkpoints and others. It
// returns the last entry that is right, and the number of the checkpoints. It fails with a
// *audit.BrokenError when the log was changed after it was written. When only a checkpoint
// was changed or added, it fails with audit.ErrCheckpoint: a false checkpoint must not hide
// which entry is wrong.
func (k *Keyring) VerifyAudit(ctx context.Context, others ...audit.Checkpoint) (last audit.Head, checkpoints int, err error) {
	marks, err := k.store.AuditCheckpoints(ctx)
	if err != nil {
		return last, 0, err
	}
	marks = append(marks, others...)
	var signed []audit.Checkpoint
	var forged error
	for _, mark := range marks {
		switch err := k.VerifyCheckpoint(mark); {
		case err == nil:
			signed = append(signed, mark)
		case forged == nil:
			forged = lang.Errorf("checkpoint of %d entries: %s", "punto de control de %d entradas: %s", mark.Seq, err)
		}
	}
	last, err = k.store.VerifyAudit(ctx, signed)
	if err == nil {
		err = forged
	}
	return last, len(marks), err
}

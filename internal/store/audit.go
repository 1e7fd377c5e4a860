package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strings"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/audit"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

// AuditEntry is one change of an object, for the audit log. Before and After have the
// fields of the object that a person may see: no keys, digests or secrets.
type AuditEntry struct {
	Scope  Scope  // empty for an object that belongs to no taxpayer
	Action string // like credential.revoke
	Object string // like credential:ID
	Before map[string]any
	After  map[string]any
}

// Audit appends a change to the audit log, as one of the caller of the context. The
// entry is committed with the change, or not at all. The log is locked until the
// transaction ends, so only rare changes by operators and guards belong into it.
func (tx *Tx) Audit(ctx context.Context, c AuditEntry) error {
	before, after, err := c.fields()
	if err != nil {
		return err
	}
	e := audit.Entry{
		At: tx.now().Truncate(time.Microsecond), Caller: audit.CallerOf(ctx), Action: c.Action, Object: c.Object,
		Environment: string(c.Scope.Environment), TaxpayerID: c.Scope.TaxpayerID, Before: before, After: after,
	}
	previous, err := one(tx.rows(ctx, "number audit entry", `
		UPDATE audit_head SET seq = seq + 1 WHERE id = 1 RETURNING seq, hash`), headColumns)
	if err != nil {
		return err
	}
	e.Seq = previous.Seq
	e.Hash = e.ChainHash(previous.Hash)
	err = tx.exec(ctx, "add audit entry", `
		INSERT INTO audit_entries (`+auditColumns+`)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)`,
		e.Seq, micros(e.At), e.Caller.Actor, e.Caller.From, e.Caller.RequestID, e.Caller.Reason, e.Action, e.Object,
		e.Environment, e.TaxpayerID, e.Before, e.After, e.Hash)
	if err != nil {
		return err
	}
	return tx.exec(ctx, "chain audit entry", `UPDATE audit_head SET hash = $1 WHERE id = 1`, e.Hash)
}

// AuditOnce is Audit, unless the log has the same action on the same object since the
// given instant. It reports whether it has added an entry.
func (tx *Tx) AuditOnce(ctx context.Context, c AuditEntry, since time.Time) (fresh bool, err error) {
	// The lock keeps another node from adding the entry after the look-up.
	if err := tx.exec(ctx, "lock audit log", `UPDATE audit_head SET seq = seq WHERE id = $1`, 1); err != nil {
		return false, err
	}
	known, err := one(tx.rows(ctx, "read audit log", `
		SELECT count(*) FROM audit_entries WHERE object = $1 AND action = $2 AND at > $3 AND environment = $4 AND taxpayer_id = $5`,
		c.Object, c.Action, micros(since), string(c.Scope.Environment), c.Scope.TaxpayerID), only[int])
	if err != nil || known > 0 {
		return false, err
	}
	return true, tx.Audit(ctx, c)
}

const auditColumns = `seq, at, actor, origin, request_id, reason, action, object, environment, taxpayer_id, before, after, hash`

// fields returns Before and After as JSON. When an object has both, only the fields
// that differ are kept.
func (c AuditEntry) fields() (before, after string, err error) {
	b, a := c.Before, c.After
	if b != nil && a != nil {
		b, a = make(map[string]any), make(map[string]any)
		for name, value := range c.After {
			if !reflect.DeepEqual(c.Before[name], value) {
				b[name], a[name] = c.Before[name], value
			}
		}
	}
	encode := func(fields map[string]any) string {
		if fields == nil || err != nil {
			return ""
		}
		var text []byte
		if text, err = json.Marshal(fields); err != nil {
			err = fmt.Errorf("store: encode audit entry: %w", err)
		}
		return string(text)
	}
	return encode(b), encode(a), err
}

// AuditFilter chooses entries of the audit log. Empty fields choose all.
type AuditFilter struct {
	Since  time.Time
	Until  time.Time // entries before this instant
	Actor  string
	Object string // kind:id, or the id alone

	// Parts, in any case of the letters.
	ActorPart  string // of the actor
	ObjectPart string // of the action or of the object; or the id of the taxpayer
}

// AuditEntries reads up to limit entries after the entry number after, the oldest
// first. Only the operator uses it.
func (r reader) AuditEntries(ctx context.Context, f AuditFilter, after int64, limit int) ([]audit.Entry, error) {
	where, args := f.conditions(`seq > $1`, after, limit)
	return r.auditEntries(ctx, `
		SELECT `+auditColumns+` FROM audit_entries WHERE `+where+` ORDER BY seq LIMIT $2`, args)
}

// AuditEntriesBefore reads up to limit entries before the entry number before, the newest
// first. Only overseers of the whole service use it.
func (r reader) AuditEntriesBefore(ctx context.Context, f AuditFilter, before int64, limit int) ([]audit.Entry, error) {
	where, args := f.conditions(`seq < $1`, before, limit)
	return r.auditEntries(ctx, `
		SELECT `+auditColumns+` FROM audit_entries WHERE `+where+` ORDER BY seq DESC LIMIT $2`, args)
}

// conditions returns the conditions of a filter after the first one, and the arguments of
// all of them.
func (f AuditFilter) conditions(first string, args ...any) (string, []any) {
	where := []string{first}
	add := func(condition string, values ...any) {
		for _, v := range values {
			args = append(args, v)
			condition = strings.Replace(condition, "?", fmt.Sprintf("$%d", len(args)), 1)
		}
		where = append(where, condition)
	}
	if !f.Since.IsZero() {
		add(`at >= ?`, micros(f.Since))
	}
	if !f.Until.IsZero() {
		add(`at < ?`, micros(f.Until))
	}
	if f.Actor != "" {
		add(`actor = ?`, f.Actor)
	}
	if f.ActorPart != "" {
		lower, exact := likeParts(f.ActorPart)
		add(`(lower(actor) LIKE ? ESCAPE '!' OR actor LIKE ? ESCAPE '!')`, lower, exact)
	}
	if f.ObjectPart != "" {
		lower, exact := likeParts(f.ObjectPart)
		add(`(lower(action) LIKE ? ESCAPE '!' OR lower(object) LIKE ? ESCAPE '!' OR object LIKE ? ESCAPE '!' OR taxpayer_id = ?)`,
			lower, lower, exact, f.ObjectPart)
	}
	switch {
	case strings.Contains(f.Object, ":"):
		add(`object = ?`, f.Object)
	case f.Object != "":
		add(`(object LIKE ? OR taxpayer_id = ?)`, "%:"+f.Object, f.Object)
	}
	return strings.Join(where, " AND "), args
}

// likeParts returns the patterns that match a part of a text: one in lower case and one as
// it is. SQLite changes the case of ASCII letters only, so a name like MARÍA needs the second
// one.
func likeParts(part string) (lower, exact string) {
	escape := strings.NewReplacer("!", "!!", "%", "!%", "_", "!_").Replace
	return "%" + escape(strings.ToLower(part)) + "%", "%" + escape(part) + "%"
}

func (r reader) auditEntries(ctx context.Context, text string, args []any) ([]audit.Entry, error) {
	return collect(r.rows(ctx, "read audit log", text, args...), func(e *audit.Entry) []any {
		return []any{
			&e.Seq, instant(&e.At), &e.Caller.Actor, &e.Caller.From, &e.Caller.RequestID, &e.Caller.Reason,
			&e.Action, &e.Object, &e.Environment, &e.TaxpayerID, &e.Before, &e.After, &e.Hash,
		}
	})
}

// AuditHead returns the recorded end of the audit log.
func (r reader) AuditHead(ctx context.Context) (audit.Head, error) {
	return one(r.rows(ctx, "read the end of the audit log", `SELECT seq, hash FROM audit_head WHERE id = 1`), headColumns)
}

func headColumns(h *audit.Head) []any { return []any{&h.Seq, &h.Hash} }

// AddAuditCheckpoint stores a signed checkpoint. It does not change a stored one.
func (tx *Tx) AddAuditCheckpoint(ctx context.Context, p audit.Checkpoint) error {
	return tx.exec(ctx, "add audit checkpoint", `
		INSERT INTO audit_checkpoints (seq, hash, at, signature) VALUES ($1, $2, $3, $4) ON CONFLICT (seq) DO NOTHING`,
		p.Seq, p.Hash, p.At, p.Signature)
}

// AuditCheckpoints lists the stored checkpoints, the oldest first.
func (r reader) AuditCheckpoints(ctx context.Context) ([]audit.Checkpoint, error) {
	return collect(r.rows(ctx, "read audit checkpoints", `SELECT seq, hash, at, signature FROM audit_checkpoints ORDER BY seq`), checkpointColumns)
}

// LatestAuditCheckpoint returns the stored checkpoint with the most entries. The error is
// ErrNotFound when there is none.
func (r reader) LatestAuditCheckpoint(ctx context.Context) (audit.Checkpoint, error) {
	return one(r.rows(ctx, "read audit checkpoint", `
		SELECT seq, hash, at, signature FROM audit_checkpoints ORDER BY seq DESC LIMIT 1`), checkpointColumns)
}

func checkpointColumns(p *audit.Checkpoint) []any { return []any{&p.Seq, &p.Hash, &p.At, &p.Signature} }

// digestText returns the SHA-256 of some bytes in hexadecimal; empty for none.
func digestText(data []byte) string {
	if len(data) == 0 {
		return ""
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// auditTime returns an instant for the audit log; nil when there is none.
func auditTime(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return fiscal.FormatInstant(t)
}

// BeforeAudit is a number before every row of the audit log, also one that somebody has
// inserted before the first entry.
const BeforeAudit = math.MinInt64

// auditPage is how many entries a verification reads at a time.
const auditPage = 1000

// VerifyAudit verifies the whole audit log: no entry was changed, removed or inserted,
// and it contains what the checkpoints state. It returns the last entry that is right,
// and an *audit.BrokenError when the log was changed after it was written.
func (s *Store) VerifyAudit(ctx context.Context, checkpoints []audit.Checkpoint) (audit.Head, error) {
	// The first page begins before the number 1: a row that was inserted there is wrong, too.
	return s.verifyAudit(ctx, audit.NewChecker(checkpoints...), BeforeAudit)
}

// VerifyAuditFrom is VerifyAudit for the entries after a verified one.
func (s *Store) VerifyAuditFrom(ctx context.Context, last audit.Head) (audit.Head, error) {
	return s.verifyAudit(ctx, audit.NewCheckerFrom(last), last.Seq)
}

// verifyAudit verifies the entries after the number after.
func (s *Store) verifyAudit(ctx context.Context, check *audit.Checker, after int64) (audit.Head, error) {
	for {
		page, err := s.AuditEntries(ctx, AuditFilter{}, after, auditPage)
		if err != nil {
			return check.Last(), err
		}
		for _, e := range page {
			if err := check.Next(e); err != nil {
				return check.Last(), err
			}
		}
		after = check.Last().Seq
		if len(page) > 0 {
			continue
		}
		// Entries may have been added since the last page. When the head is further, the
		// next page must have them.
		head, err := s.AuditHead(ctx)
		if err != nil {
			return check.Last(), err
		}
		more, err := s.AuditEntries(ctx, AuditFilter{}, after, 1)
		if err != nil {
			return check.Last(), err
		}
		if len(more) == 0 || head.Seq <= check.Last().Seq {
			return check.Last(), check.End(head)
		}
	}
}

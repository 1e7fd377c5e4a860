// Package audit defines the log of what operators and the service's own guards change:
// its entries, the hash chain that shows any later change of them, and the signed
// checkpoints that show a shortened log. It does no I/O.
package audit

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"time"
)

// Caller is the person or program on whose behalf something changes.
type Caller struct {
	Actor     string // a person, the credential of an integrator, or System
	From      string // the host or the network address from which the actor acts
	RequestID string // of an HTTP request; empty for a command
	Reason    string // as the actor states it; may be empty
}

// System is the actor of a change that the service makes without being asked.
const System = "system"

type callerKey struct{}

// WithCaller returns a context whose changes are recorded as those of the caller.
func WithCaller(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// WithReason returns a context with the same caller and the given reason.
func WithReason(ctx context.Context, reason string) context.Context {
	c := CallerOf(ctx)
	c.Reason = reason
	return WithCaller(ctx, c)
}

// CallerOf returns the caller of a context. Without one the actor is System.
func CallerOf(ctx context.Context) Caller {
	c, _ := ctx.Value(callerKey{}).(Caller)
	if c.Actor == "" {
		c.Actor = System
	}
	return c
}

// Entry is one row of the log. It contains no secrets.
type Entry struct {
	Seq         int64 // 1, 2, 3, … without a gap
	At          time.Time
	Caller      Caller
	Action      string // object and verb, like credential.revoke
	Object      string // kind and id, like credential:0198…
	Environment string // empty when the change concerns all environments
	TaxpayerID  string // empty when the change concerns no taxpayer
	Before      string // JSON of the changed fields; empty when the object is new
	After       string // JSON of the changed fields; empty when the object is gone
	Hash        []byte // of this entry and of all entries before it
}

// ChainHash returns the hash that the entry must have after the entry with the hash
// previous. It covers every field but Hash. Each field is preceded by its length, so
// that no text can move from one field to the next.
func (e Entry) ChainHash(previous []byte) []byte {
	h := sha256.New()
	h.Write(previous)
	var number [8]byte
	integer := func(n int64) {
		binary.BigEndian.PutUint64(number[:], uint64(n)) //nolint:gosec // only the bytes matter
		h.Write(number[:])
	}
	integer(e.Seq)
	integer(e.At.UnixMicro())
	for _, field := range []string{
		e.Caller.Actor, e.Caller.From, e.Caller.RequestID, e.Caller.Reason,
		e.Action, e.Object, e.Environment, e.TaxpayerID, e.Before, e.After,
	} {
		integer(int64(len(field)))
		h.Write([]byte(field))
	}
	return h.Sum(nil)
}

// Start returns the hash before the first entry.
func Start() []byte { return make([]byte, sha256.Size) }

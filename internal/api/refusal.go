package api

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/access"
	"github.com/fiscalhub/fiscalhub/internal/audit"
	"github.com/fiscalhub/fiscalhub/internal/event"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/pipeline"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// Reasons for which the API refuses a credential, in addition to those of package access.
const (
	reasonMissing          access.Reason = "missing"
	reasonMalformed        access.Reason = "malformed"
	reasonWrongEnvironment access.Reason = "wrong_environment"
	reasonSuspended        access.Reason = "suspended"
	reasonWrongAddress     access.Reason = "wrong_address"
	reasonWrongCertificate access.Reason = "wrong_certificate"
)

const (
	// Log lines about refused keys in a minute: of one client, and of all of them. A flood
	// of wrong keys must not fill the disk.
	refusalsPerClient = 10
	refusalsPerMinute = 200
	// reportEvery is the time between two audit entries about the same credential.
	reportEvery = time.Hour
)

// refusals limits what refused keys write.
type refusals struct {
	log *slog.Logger
	now func() time.Time

	mu       sync.Mutex
	minute   time.Time // when the current minute began
	lines    int       // in this minute
	clients  map[string]int
	left     int                  // refused keys without a line in this minute
	reported map[string]time.Time // by credential id; only right keys of stored credentials are here
}

func newRefusals(log *slog.Logger, now func() time.Time) *refusals {
	return &refusals{log: log, now: now, clients: make(map[string]int), reported: make(map[string]time.Time)}
}

// refuse records that a credential was refused: in the metrics, in the log and, when
// someone uses a key that was taken away or that belongs to other clients, in the audit
// log. The taxpayer gets an event about a key that was taken away. It does not wait for
// the database. credential is zero when the key is not that of a credential.
func (a *API) refuse(x *exchange, reason access.Reason, prefix string, credential store.Credential) {
	a.metrics.refused.WithLabelValues(string(reason)).Inc()
	client := x.address
	if a.refusals.mayLog(client) {
		attrs := []slog.Attr{slog.String("reason", string(reason)), slog.String("client", client), slog.String("request_id", x.id)}
		if prefix != "" {
			attrs = append(attrs, slog.String("credential", prefix))
		}
		a.log.LogAttrs(x.r.Context(), slog.LevelWarn, "The service refused an API key.", attrs...)
	}
	// The key is in the wrong hands.
	stolen := reason == access.ReasonRevoked || reason == access.ReasonAltered || reason == reasonWrongAddress || reason == reasonWrongCertificate ||
		reason == reasonSuspended && credential.Suspended.Kind() == "credential"
	if stolen && a.refusals.mayReport(credential.ID) {
		a.reportRefusal(credential, reason, audit.Caller{Actor: "credential:" + credential.ID, From: client, RequestID: x.id})
	}
}

// mayLog reports whether a line about a client may be logged. At the beginning of a minute
// it logs how many keys were refused without a line in the one before.
func (r *refusals) mayLog(client string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	if now.Sub(r.minute).Abs() >= time.Minute {
		if r.left > 0 {
			r.log.Warn("The service refused more API keys than it has logged. See the metric fiscalhub_authentication_failures_total.", "refused", r.left)
		}
		r.minute, r.lines, r.left = now, 0, 0
		clear(r.clients)
	}
	if r.lines >= refusalsPerMinute || r.clients[client] >= refusalsPerClient {
		r.left++
		return false
	}
	r.lines++
	r.clients[client]++
	return true
}

// mayReport reports whether this node has not reported a credential in the last hour.
func (r *refusals) mayReport(credentialID string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	if last, ok := r.reported[credentialID]; ok && now.Sub(last).Abs() < reportEvery {
		return false
	}
	r.reported[credentialID] = now
	return true
}

// reportRefusal adds the use of a credential that was taken away to the audit log, and
// tells the taxpayer with an event. The journal writes both after the request, and drops
// them when too much waits.
func (a *API) reportRefusal(c store.Credential, reason access.Reason, caller audit.Caller) {
	scope, now := store.Scope{Environment: c.Environment, TaxpayerID: c.TaxpayerID}, a.now()
	a.pipeline.Journal().Add(func(ctx context.Context, tx *store.Tx) error {
		fresh, err := tx.AuditOnce(audit.WithCaller(ctx, caller), store.Change{
			Scope: scope, Action: "credential.refuse", Object: "credential:" + c.ID,
			After: map[string]any{"prefix": c.Prefix, "reason": string(reason)},
		}, now.Add(-reportEvery))
		if err != nil || !fresh || scope.Environment == fiscal.Sandbox || (reason != access.ReasonRevoked && reason != reasonSuspended) {
			return err
		}
		e, err := pipeline.NewEvent(scope, event.CredentialRefused, now, event.NewRefusedCredential(c.ID, string(reason)))
		if err != nil {
			return err
		}
		return tx.AddEvent(ctx, e)
	})
}

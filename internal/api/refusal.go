package api

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/access"
	"github.com/fiscalhub/fiscalhub/internal/audit"
	"github.com/fiscalhub/fiscalhub/internal/event"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/pipeline"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/webhook"
)

// Reasons for which the API refuses a credential, the message of a source or a sender at
// /fe, in addition to the reasons of package access.
const (
	reasonMissing          access.Reason = "missing"
	reasonMalformed        access.Reason = "malformed"
	reasonWrongEnvironment access.Reason = "wrong_environment"
	reasonSuspended        access.Reason = "suspended"
	reasonWrongAddress     access.Reason = "wrong_address"
	reasonWrongCertificate access.Reason = "wrong_certificate"
	reasonWrongSignature   access.Reason = "wrong_signature"
	reasonWrongTime        access.Reason = "wrong_time"
	reasonWrongToken       access.Reason = "wrong_token"
	reasonWrongSeed        access.Reason = "wrong_seed"
)

const (
	// Log lines about refused credentials in a minute: of one client, and of all of them. A
	// flood of wrong ones must not fill the disk.
	refusalsPerClient = 10
	refusalsPerMinute = 200
	// reportEvery is the time between two audit entries about the same credential.
	reportEvery = time.Hour
)

// refusals limits what refused credentials write.
type refusals struct {
	log *slog.Logger
	now func() time.Time

	mu       sync.Mutex
	minute   time.Time // when the current minute began
	lines    int       // in this minute
	clients  map[string]int
	left     int                  // refused credentials without a line in this minute
	reported map[string]time.Time // by credential id; only right keys of stored credentials are here
}

func newRefusals(log *slog.Logger, now func() time.Time) *refusals {
	return &refusals{log: log, now: now, clients: make(map[string]int), reported: make(map[string]time.Time)}
}

// refuse records that a credential was refused: in the metrics, in the log and, when
// someone uses a key that was taken away or that belongs to other clients, in the audit
// log. The taxpayer gets an event about a key that was taken away. It does not wait for
// the database. credential is zero when the key belongs to no credential.
func (a *API) refuse(x *exchange, reason access.Reason, prefix string, credential store.Credential) {
	client, attrs := x.address, []slog.Attr{slog.String("request_id", x.id)}
	if prefix != "" {
		attrs = append(attrs, slog.String("credential", prefix))
	}
	a.countRefusal(x.r.Context(), "The service refused an API key.", reason, client, attrs...)
	// The key is in the wrong hands.
	stolen := reason == access.ReasonRevoked || reason == access.ReasonAltered || reason == reasonWrongAddress || reason == reasonWrongCertificate ||
		reason == reasonSuspended && credential.Suspended.Kind() == "credential"
	if stolen && a.refusals.mayReport(credential.ID) {
		a.reportRefusal(credential, reason, audit.Caller{Actor: "credential:" + credential.ID, From: client, RequestID: x.id})
	}
}

// refuseSource records that a message of a source was refused, in the metrics and in the
// log. err comes from webhook.Verify.
func (a *API) refuseSource(x *exchange, source store.Source, err error) {
	reason := reasonWrongSignature
	switch {
	case errors.Is(err, webhook.ErrMissing):
		reason = reasonMissing
	case errors.Is(err, webhook.ErrStale):
		reason = reasonWrongTime
	}
	a.countRefusal(x.r.Context(), "The service refused a message of a source.", reason, x.address,
		slog.String("request_id", x.id), slog.String("source", source.ID))
}

// RefuseToken records that the token of a sender at /fe was refused, in the metrics and in
// the log.
func (a *API) RefuseToken(r *http.Request) {
	a.countRefusal(r.Context(), "The service refused the token of a sender.", reasonWrongToken, a.o.Clients.Address(r))
}

// RefuseSeed is RefuseToken for a signed seed, for which the sender gets no token.
func (a *API) RefuseSeed(r *http.Request) {
	a.countRefusal(r.Context(), "The service refused the signed seed of a sender.", reasonWrongSeed, a.o.Clients.Address(r))
}

// countRefusal counts a refused credential and logs it, unless too many were logged in
// this minute.
func (a *API) countRefusal(ctx context.Context, message string, reason access.Reason, client string, attrs ...slog.Attr) {
	a.metrics.refused.WithLabelValues(string(reason)).Inc()
	if a.refusals.mayLog(client) {
		attrs = append([]slog.Attr{slog.String("reason", string(reason)), slog.String("client", client)}, attrs...)
		a.o.Log.LogAttrs(ctx, slog.LevelWarn, message, attrs...)
	}
}

// mayLog reports whether a line about a client may be logged. At the beginning of a minute
// it logs how many credentials were refused without a line in the one before.
func (r *refusals) mayLog(client string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	if now.Sub(r.minute).Abs() >= time.Minute {
		if r.left > 0 {
			r.log.Warn("The service refused more credentials than it has logged. See the metric fiscalhub_authentication_failures_total.", "refused", r.left)
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
	scope, now := store.Scope{Environment: c.Environment, TaxpayerID: c.TaxpayerID}, a.o.Now()
	a.o.Pipeline.Journal().Add(func(ctx context.Context, tx *store.Tx) error {
		fresh, err := tx.AuditOnce(audit.WithCaller(ctx, caller), store.AuditEntry{
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

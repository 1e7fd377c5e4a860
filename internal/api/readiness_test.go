package api_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/live"
	"github.com/fiscalhub/fiscalhub/internal/pipeline"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig/xmlsigtest"
)

// registerPlan is the live plan, but accepted invoices stay queued.
type registerPlan struct{ *live.Plan }

func (registerPlan) Start(inv *fiscal.Invoice, s pipeline.Scenario) pipeline.Start {
	return queuedPlan{}.Start(inv, s)
}

// stubSigners is an authority and a source of identities with one signer.
type stubSigners struct {
	live.Authority
	id          *xmlsig.Identity
	undelegated bool
}

func (s *stubSigners) Identity(context.Context, store.Scope, time.Time) (*xmlsig.Identity, error) {
	return s.id, nil
}

func (s *stubSigners) Undelegated(*xmlsig.Identity, string) (string, bool) {
	return "El RNC no está delegado", s.undelegated
}

func (s *stubSigners) Down() (time.Time, bool) { return time.Time{}, false }

// Each readiness problem is caused, reported by its code, and solved. The same key
// is accepted then.
func TestEachReadinessProblem(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		opt := envOptions{environment: fiscal.Production, masterKey: filepath.Join(t.TempDir(), "master.key")}
		first := newEnv(t, address, opt)
		signers := &stubSigners{id: xmlsigtest.Must(t, xmlsigtest.Options{}).Identity}
		plan, err := live.New(live.Options{
			Store: first.store, Authority: signers, Identities: signers, Now: first.opt.now, Log: slog.New(slog.DiscardHandler), Env: fiscal.Production,
		})
		first.must(err)
		opt.plan = registerPlan{plan}
		e := newNode(t, address, opt)
		e.taxpayer, e.key = first.taxpayer, first.key
		now := e.opt.now()
		e.addCertificate(now)
		e.addNumberRange(1)
		conn, err := e.database(t).Conn(t.Context())
		e.must(err)
		defer func() { _ = conn.Close() }()
		if e.store.Engine() == "sqlite" {
			executeAll(t, conn, `PRAGMA busy_timeout = 5000`)
		}
		set := func(statement string, args ...any) func() {
			return func() { e.must(execute(t.Context(), conn, statement, args...)) }
		}
		both := func(first, then func()) func() { return func() { first(); then() } }
		hour := time.Hour.Microseconds()
		for i, tt := range []struct {
			code             string
			breaks, restores func()
		}{
			{"taxpayer.profile_incomplete", set(`UPDATE taxpayers SET address = ''`), set(`UPDATE taxpayers SET address = 'Av. Inventada 1'`)},
			{"certificate.missing", set(`DELETE FROM certificates`), func() { e.addCertificate(now) }},
			{"certificate.expired", set(`UPDATE certificates SET not_after = $1`, now.UnixMicro()-hour), set(`UPDATE certificates SET not_after = $1`, now.UnixMicro()+hour)},
			{"certificate.not_yet_valid", set(`UPDATE certificates SET not_before = $1`, now.UnixMicro()+hour/2), set(`UPDATE certificates SET not_before = $1`, now.UnixMicro()-hour)},
			{"certificate.revoked", set(`UPDATE certificates SET revoked_at = $1`, now.UnixMicro()-1), both(set(`DELETE FROM certificates`), func() { e.addCertificate(now) })},
			{"sequence.missing", set(`DELETE FROM number_ranges`), func() { e.addNumberRange(1) }},
			{"sequence.exhausted", set(`UPDATE number_ranges SET next_number = last_number + 1`), func() { e.addNumberRange(101) }},
			{"sequence.expired", set(`UPDATE number_ranges SET expires = '2026-11-14' WHERE next_number <= last_number`), set(`UPDATE number_ranges SET expires = '2026-11-15'`)},
			{"sequence.fenced", set(`UPDATE number_ranges SET fenced_at = $1`, now.UnixMicro()), set(`UPDATE number_ranges SET fenced_at = NULL`)},
			{"dgii.delegation_rejected", func() { signers.undelegated = true }, func() { signers.undelegated = false; e.clock.advance(time.Second) }},
		} {
			key, name := fmt.Sprintf("k-%d", i), fmt.Sprintf("R-%d", i)
			tt.breaks()
			a := e.create(key, invoiceBody(name))
			wantCode(t, tt.code, a, http.StatusConflict, "operational_readiness_failed")
			field, _, _ := strings.Cut(tt.code, ".")
			if got := a.details(t); len(got) != 1 || got[0].Code != tt.code || got[0].Field != field || got[0].Message == "" {
				t.Errorf("%s: details %+v", tt.code, got)
			}
			if _, err := e.store.StoredReply(t.Context(), e.scope(), pipeline.CreateInvoice, key); !errors.Is(err, store.ErrNotFound) {
				t.Errorf("%s: want nothing stored under the key, got %v", tt.code, err)
			}
			tt.restores()
			a = e.create(key, invoiceBody(name))
			e.created(a)
			if a.header.Get("Idempotency-Replayed") != "" {
				t.Errorf("%s: the refusal is stored under the key", tt.code)
			}
		}
	})
}

// addCertificate gives the taxpayer a certificate that is valid for another hour.
func (e *env) addCertificate(now time.Time) {
	e.t.Helper()
	ctx := e.t.Context()
	e.must(e.store.Update(ctx, func(tx *store.Tx) error {
		_, err := tx.AddCertificate(ctx, store.Certificate{
			Scope: e.scope(), ID: store.NewID(), DER: []byte("certificate"), Sealed: []byte("elsewhere"),
			NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour), CreatedAt: now,
		})
		return err
	}))
}

// addNumberRange gives the taxpayer a hundred numbers of type 32.
func (e *env) addNumberRange(from int64) {
	e.t.Helper()
	ctx := e.t.Context()
	e.must(e.store.Update(ctx, func(tx *store.Tx) error {
		return tx.AddNumberRange(ctx, store.NumberRange{
			Scope: e.scope(), ID: store.NewID(), Type: fiscal.Consumer, First: from, Last: from + 99, Next: from, CreatedAt: e.opt.now(),
		})
	}))
}

// execute runs a statement, and fails when it changes nothing.
func execute(ctx context.Context, conn *sql.Conn, statement string, args ...any) error {
	done, err := conn.ExecContext(ctx, statement, args...)
	if err != nil {
		return err
	}
	if n, err := done.RowsAffected(); err != nil || n > 0 {
		return err
	}
	return errors.New(statement + " changed nothing")
}

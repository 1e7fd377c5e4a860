package store_test

import (
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/audit"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// Every change of an operator is an entry with its actor, in the transaction of the
// change.
func TestEveryChangeOfAnOperatorIsAudited(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		ctx := audit.WithCaller(t.Context(), audit.Caller{Actor: "ana@office", From: "office", Reason: "because"})
		scope := store.Scope{Environment: fiscal.Certification, TaxpayerID: store.NewID()}
		now := s.Now()
		taxpayer := store.Taxpayer{ID: scope.TaxpayerID, RNC: "131000016", LegalName: "Antes, SRL", Phones: []string{}, CreatedAt: now, UpdatedAt: now}
		credential := store.Credential{ID: store.NewID(), Prefix: "p", Environment: scope.Environment, TaxpayerID: scope.TaxpayerID, Digest: []byte("SECRET-DIGEST"), CreatedAt: now}
		numbers := store.NumberRange{Scope: scope, ID: store.NewID(), Type: fiscal.Consumer, First: 1, Last: 9, Next: 1, CreatedAt: now}
		endpoint := store.Endpoint{Scope: scope, ID: store.NewID(), URL: "https://example.com/", Kinds: []string{"*"}, Secret: store.SealedSecret{Sealed: []byte("SECRET-SEALED"), Version: 1}, CreatedAt: now, UpdatedAt: now}
		source := store.Source{Scope: scope, ID: store.NewID(), Kinds: []string{"x"}, Secret: store.SealedSecret{Sealed: []byte("SECRET-SEALED"), Version: 1}, CreatedAt: now}
		signer := store.BuyerSigner{Scope: scope, BuyerRNC: "131000024", Signer: "00112345678", CreatedAt: now}
		steps := []struct {
			action string
			change func(tx *store.Tx) error
		}{
			{"taxpayer.create", func(tx *store.Tx) error { return tx.CreateTaxpayer(ctx, taxpayer) }},
			{"taxpayer.update", func(tx *store.Tx) error {
				taxpayer.LegalName = "Después, SRL"
				return tx.UpdateTaxpayer(ctx, taxpayer)
			}},
			{"credential.create", func(tx *store.Tx) error { return tx.CreateCredential(ctx, credential) }},
			{"credential.expire", func(tx *store.Tx) error { return tx.ExpireCredential(ctx, credential.ID, now.Add(time.Hour)) }},
			{"credential.suspend", func(tx *store.Tx) error {
				return tx.Suspend(ctx, store.Suspension{Subject: store.CredentialSubject(credential.ID), Reason: "leaked", At: now})
			}},
			{"credential.resume", func(tx *store.Tx) error { return tx.Resume(ctx, store.CredentialSubject(credential.ID)) }},
			{"taxpayer.suspend", func(tx *store.Tx) error {
				return tx.Suspend(ctx, store.Suspension{Subject: store.TaxpayerSubject(taxpayer.ID), At: now})
			}},
			{"taxpayer.resume", func(tx *store.Tx) error { return tx.Resume(ctx, store.TaxpayerSubject(taxpayer.ID)) }},
			{"credential.revoke", func(tx *store.Tx) error { return tx.RevokeCredential(ctx, credential.ID, now) }},
			{"certificate.import", func(tx *store.Tx) error {
				_, err := tx.AddCertificate(ctx, store.Certificate{Scope: scope, ID: "certificate", DER: []byte("der"), Sealed: []byte("SECRET-SEALED"), NotBefore: now, NotAfter: now, CreatedAt: now})
				return err
			}},
			{"certificate.revoke", func(tx *store.Tx) error { return tx.RevokeCertificate(ctx, scope, "certificate", now) }},
			{"sequence.add", func(tx *store.Tx) error { return tx.AddNumberRange(ctx, numbers) }},
			{"sequence.fence", func(tx *store.Tx) error {
				_, err := tx.FenceBehind(ctx, numbers, 5, now)
				numbers.FencedAt = now
				return err
			}},
			{"sequence.release", func(tx *store.Tx) error { return tx.ReleaseNumberRange(ctx, numbers, 6) }},
			{"webhook.create", func(tx *store.Tx) error { return tx.CreateEndpoint(ctx, endpoint) }},
			{"webhook.rotate", func(tx *store.Tx) error {
				return tx.RotateEndpoint(ctx, endpoint, store.SealedSecret{Sealed: []byte("SECRET-SEALED"), Version: 2}, now, now)
			}},
			{"webhook.disable", func(tx *store.Tx) error { return tx.DisableEndpoint(ctx, scope, endpoint.ID, "gone", now) }},
			{"webhook.enable", func(tx *store.Tx) error { return tx.EnableEndpoint(ctx, scope, endpoint.ID, now) }},
			{"webhook.delete", func(tx *store.Tx) error { return tx.DeleteEndpoint(ctx, scope, endpoint.ID, now) }},
			{"source.create", func(tx *store.Tx) error { return tx.CreateSource(ctx, source) }},
			{"source.rotate", func(tx *store.Tx) error {
				return tx.RotateSource(ctx, source, store.SealedSecret{Sealed: []byte("SECRET-SEALED"), Version: 2}, now)
			}},
			{"source.revoke", func(tx *store.Tx) error { return tx.RevokeSource(ctx, scope, source.ID, now) }},
			{"buyer.confirm", func(tx *store.Tx) error { return tx.ConfirmBuyerSigner(ctx, signer) }},
			{"buyer.remove", func(tx *store.Tx) error { return tx.RemoveBuyerSigner(ctx, signer) }},
		}
		for i, step := range steps {
			rolledBack := errors.New("roll back")
			err := s.Update(ctx, func(tx *store.Tx) error { return errors.Join(step.change(tx), rolledBack) })
			if err.Error() != rolledBack.Error() {
				t.Fatalf("%s: %v", step.action, err)
			}
			if err := s.Update(ctx, step.change); err != nil {
				t.Fatalf("%s: %v", step.action, err)
			}
			entries := auditEntries(t, s, store.AuditFilter{})
			if len(entries) != i+1 {
				t.Fatalf("%s: there are %d entries, want %d", step.action, len(entries), i+1)
			}
			last := entries[i]
			if last.Action != step.action || last.Caller != audit.CallerOf(ctx) || last.TaxpayerID != scope.TaxpayerID {
				t.Errorf("%s: the entry is %+v", step.action, last)
			}
			if strings.Contains(last.Before+last.After, "SECRET") {
				t.Errorf("%s: the entry has a secret: %+v", step.action, last)
			}
		}
		update := auditEntries(t, s, store.AuditFilter{Object: "taxpayer:" + taxpayer.ID})[1]
		if update.Before != `{"legal_name":"Antes, SRL"}` || update.After != `{"legal_name":"Después, SRL"}` {
			t.Errorf("the update has %s and %s, want only the changed field", update.Before, update.After)
		}
		if head, err := s.VerifyAudit(t.Context(), nil); err != nil || head.Seq != int64(len(steps)) {
			t.Errorf("verification: %d, %v", head.Seq, err)
		}
	})
}

// auditEntries reads the entries that a filter chooses.
func auditEntries(t *testing.T, s *store.Store, f store.AuditFilter) []audit.Entry {
	t.Helper()
	entries, err := s.AuditEntries(t.Context(), f, 0, 1000)
	if err != nil {
		t.Fatal(err)
	}
	return entries
}

// addEntries adds n entries.
func addEntries(t *testing.T, s *store.Store, n int) {
	t.Helper()
	err := s.Update(t.Context(), func(tx *store.Tx) error {
		for i := range n {
			if err := tx.Audit(t.Context(), store.AuditEntry{Action: "test", Object: fmt.Sprintf("thing:%d", i+1), After: map[string]any{"n": i}}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Somebody who may write to the database changes one row in any way. The verification
// names the first wrong entry.
func TestVerifyAuditFindsEveryChangedRow(t *testing.T) {
	t.Parallel()
	const n = 6
	columns := []string{"actor", "origin", "request_id", "reason", "action", "object", "environment", "taxpayer_id", "before", "after"}
	type tampering struct {
		statement string
		wrong     int64
	}
	var all []tampering
	for _, c := range columns {
		all = append(all, tampering{fmt.Sprintf(`UPDATE audit_entries SET %s = %s || 'x' WHERE seq = 3`, c, c), 3})
	}
	all = append(all, tampering{`UPDATE audit_entries SET at = at + 1 WHERE seq = 4`, 4}, tampering{`DELETE FROM audit_head`, 0})
	for seq := int64(1); seq <= n; seq++ {
		all = append(all,
			tampering{fmt.Sprintf(`DELETE FROM audit_entries WHERE seq = %d`, seq), seq},
			tampering{fmt.Sprintf(`UPDATE audit_entries SET seq = 100 WHERE seq = %d`, seq), seq},
			tampering{fmt.Sprintf(`UPDATE audit_entries SET hash = (SELECT hash FROM audit_head) WHERE seq = %d AND seq < 6`, seq), seq},
		)
	}
	all = all[:len(all)-1] // the last entry already has the hash of the head
	all = append(all,
		tampering{`INSERT INTO audit_entries SELECT 7, at, actor, origin, request_id, reason, action, object, environment, taxpayer_id, before, after, hash FROM audit_entries WHERE seq = 6`, 7},
		tampering{`INSERT INTO audit_entries SELECT 0, at, 'eva', origin, request_id, reason, action, object, environment, taxpayer_id, before, after, hash FROM audit_entries WHERE seq = 6`, 0},
		tampering{`INSERT INTO audit_entries SELECT -9223372036854775807, at, 'eva', origin, request_id, reason, action, object, environment, taxpayer_id, before, after, hash FROM audit_entries WHERE seq = 6`, -9223372036854775807},
		tampering{`UPDATE audit_entries SET seq = CASE seq WHEN 2 THEN -5 ELSE -2 END WHERE seq IN (2, 5); UPDATE audit_entries SET seq = -seq WHERE seq < 0`, 2},
		tampering{`UPDATE audit_head SET seq = 5`, 6},
		tampering{`UPDATE audit_head SET seq = 9`, 7},
	)
	storetest.EachAddress(t, func(t *testing.T, address string) {
		s := storetest.Open(t, address, time.Now)
		addEntries(t, s, n)
		db := storetest.OpenSQL(t, address)
		dropTriggers(t, db, s.Engine())
		for _, c := range all {
			restore := copyAudit(t, db)
			for _, statement := range strings.Split(c.statement, "; ") {
				if _, err := db.ExecContext(t.Context(), statement); err != nil {
					t.Fatalf("%s: %v", statement, err)
				}
			}
			_, err := s.VerifyAudit(t.Context(), nil)
			var broken *audit.BrokenError
			switch {
			case c.wrong == 0 && err == nil, c.wrong != 0 && !errors.As(err, &broken):
				t.Errorf("%s: %v", c.statement, err)
			case c.wrong != 0 && broken.Seq != c.wrong:
				t.Errorf("%s: %v, want entry %d", c.statement, err, c.wrong)
			}
			restore()
		}
		if _, err := s.VerifyAudit(t.Context(), nil); err != nil {
			t.Errorf("after all was restored: %v", err)
		}
	})
}

// dropTriggers removes what keeps statements from changing the log.
func dropTriggers(t *testing.T, db *sql.DB, engine string) {
	t.Helper()
	statements := []string{`DROP TRIGGER audit_entries_no_update`, `DROP TRIGGER audit_entries_no_delete`}
	if engine == "postgres" {
		statements = []string{`DROP TRIGGER audit_entries_append_only ON audit_entries`}
	}
	for _, statement := range statements {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
}

// copyAudit copies the log. The function that it returns puts the copy back.
func copyAudit(t *testing.T, db *sql.DB) (restore func()) {
	t.Helper()
	run := func(statements ...string) {
		t.Helper()
		for _, statement := range statements {
			if _, err := db.ExecContext(t.Context(), statement); err != nil {
				t.Fatalf("%s: %v", statement, err)
			}
		}
	}
	run(`CREATE TABLE entries_copy AS SELECT * FROM audit_entries`, `CREATE TABLE head_copy AS SELECT * FROM audit_head`)
	return func() {
		t.Helper()
		run(`DELETE FROM audit_entries`, `INSERT INTO audit_entries SELECT * FROM entries_copy`,
			`DELETE FROM audit_head`, `INSERT INTO audit_head SELECT * FROM head_copy`,
			`DROP TABLE entries_copy`, `DROP TABLE head_copy`)
	}
}

// The tables refuse changes of entries and checkpoints.
func TestAuditIsAppendOnly(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		addEntries(t, s, 2)
		err := s.Update(t.Context(), func(tx *store.Tx) error {
			return tx.AddAuditCheckpoint(t.Context(), audit.Checkpoint{Seq: 2, Hash: audit.Start(), At: "x", Signature: []byte("y")})
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, statement := range []string{
			`UPDATE audit_entries SET actor = 'x'`, `DELETE FROM audit_entries`,
			`UPDATE audit_checkpoints SET at = 'x'`, `DELETE FROM audit_checkpoints`,
		} {
			err := s.Update(t.Context(), func(tx *store.Tx) error { return tx.Exec(t.Context(), statement) })
			if err == nil || errors.Is(err, store.ErrUnavailable) {
				t.Errorf("%s: %v, want an error other than ErrUnavailable", statement, err)
			}
		}
	})
}

// Concurrent changes are numbered without a gap, and a verification beside them holds.
func TestConcurrentChangesMakeOneChain(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		const writers, each = 4, 6
		var all sync.WaitGroup
		for range writers {
			all.Go(func() {
				for range each {
					addEntries(t, s, 2)
					if _, err := s.VerifyAudit(t.Context(), nil); err != nil {
						t.Errorf("beside other changes: %v", err)
					}
				}
			})
		}
		all.Wait()
		if head, err := s.VerifyAudit(t.Context(), nil); err != nil || head.Seq != writers*each*2 {
			t.Errorf("%d entries, %v", head.Seq, err)
		}
	})
}

func TestAuditFilter(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		clock := storetest.NewClock()
		s := storetest.Open(t, address, clock.Now)
		middle := clock.Now()
		for i, actor := range []string{"ana", "ben", "ana"} {
			ctx := audit.WithCaller(t.Context(), audit.Caller{Actor: actor})
			err := s.Update(ctx, func(tx *store.Tx) error {
				return tx.Audit(ctx, store.AuditEntry{Scope: store.Scope{TaxpayerID: "t"}, Action: "test", Object: fmt.Sprintf("thing:%d", i+1)})
			})
			if err != nil {
				t.Fatal(err)
			}
			if i == 0 {
				middle = clock.Now().Add(time.Second)
			}
			clock.Advance(time.Minute)
		}
		for _, tt := range []struct {
			filter store.AuditFilter
			want   []int64
		}{
			{store.AuditFilter{}, []int64{1, 2, 3}},
			{store.AuditFilter{Actor: "ana"}, []int64{1, 3}},
			{store.AuditFilter{Since: middle}, []int64{2, 3}},
			{store.AuditFilter{Object: "thing:2"}, []int64{2}},
			{store.AuditFilter{Object: "2"}, []int64{2}},
			{store.AuditFilter{Object: "t"}, []int64{1, 2, 3}},
			{store.AuditFilter{Actor: "ana", Since: middle, Object: "t"}, []int64{3}},
			{store.AuditFilter{Actor: "' OR 1=1 --"}, nil},
			{store.AuditFilter{Actor: "an"}, nil},
			{store.AuditFilter{ActorPart: "AN"}, []int64{1, 3}},
			{store.AuditFilter{ActorPart: "a%a"}, nil},
			{store.AuditFilter{ActorPart: "_na"}, nil},
			{store.AuditFilter{ActorPart: "!"}, nil},
			{store.AuditFilter{ObjectPart: "TES"}, []int64{1, 2, 3}},
			{store.AuditFilter{ObjectPart: "hing:2"}, []int64{2}},
			{store.AuditFilter{ObjectPart: "t"}, []int64{1, 2, 3}},
			{store.AuditFilter{ObjectPart: "%"}, nil},
			{store.AuditFilter{ActorPart: "n", ObjectPart: "ing:3", Since: middle}, []int64{3}},
		} {
			var got []int64
			for _, e := range auditEntries(t, s, tt.filter) {
				got = append(got, e.Seq)
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("%+v: %v, want %v", tt.filter, got, tt.want)
			}
		}
	})
}

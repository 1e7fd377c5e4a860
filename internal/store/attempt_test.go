package store_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// After a restore, each document that waits to be sent gets one open attempt.
func TestLostAttemptsAreOpenedOnce(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		numbers := addNumberRange(t, s)
		var documents []string
		for i, row := range []struct {
			stage string
			lease time.Time
		}{{"submit", noon}, {"submit", noon.Add(time.Minute)}, {"poll", noon}, {"submit", noon}} {
			encf := fmt.Sprintf("E32000000000%d", i+1)
			inv := addInvoice(t, s, numbers.Scope, encf)
			documents = append(documents, inv.DocumentID)
			update(t, s, func(ctx context.Context, tx *store.Tx) error {
				err := tx.Issue(ctx, store.Issued{
					Scope: inv.Scope, RNC: "199000013", ENCF: encf, DocumentID: inv.DocumentID, NumberRangeID: numbers.ID,
					SignedAt: noon, CreatedAt: noon, XMLDigest: []byte{1}, SentDigest: []byte{2}, XML: []byte{3},
				})
				if err != nil {
					return err
				}
				return tx.TakeOverJob(ctx, store.Job{
					Scope: inv.Scope, DocumentID: inv.DocumentID, Plan: "live", Stage: row.stage, Lease: "worker", LeaseUntil: row.lease, RunAt: noon, CreatedAt: noon,
				})
			})
		}
		opened := func(of store.NumberRange, u store.Unsent) (counts []int) {
			t.Helper()
			if err := s.OpenLostAttempts(t.Context(), of, u, noon); err != nil {
				t.Fatal(err)
			}
			for _, id := range documents {
				attempts, err := s.Attempts(t.Context(), numbers.Scope, id)
				if err != nil {
					t.Fatal(err)
				}
				counts = append(counts, len(attempts))
			}
			return counts
		}
		other := numbers
		other.ID = store.NewID()
		for _, step := range []struct {
			name string
			of   store.NumberRange
			u    store.Unsent
			want []int
		}{
			{"another range", other, store.Unsent{}, []int{0, 0, 0, 0}},
			{"up to a number, without a job that a worker holds", numbers, store.Unsent{UpTo: "E320000000003", Idle: noon}, []int{1, 0, 0, 0}},
			{"all documents", numbers, store.Unsent{}, []int{1, 1, 0, 1}},
			{"again", numbers, store.Unsent{}, []int{1, 1, 0, 1}},
		} {
			if diff := cmp.Diff(step.want, opened(step.of, step.u)); diff != "" {
				t.Errorf("%s: attempts of each document (-want +got):\n%s", step.name, diff)
			}
		}
	})
}

// A backlog of any size gets its attempts in short transactions.
// LOST_ATTEMPTS says how many documents wait.
func TestLostAttemptsAreOpenedInBatches(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		s := storetest.Open(t, address, time.Now)
		numbers := addNumberRange(t, s)
		count := int64(sizeOf(t, "LOST_ATTEMPTS", 1200))
		if err := s.ImportJobs(t.Context(), numbers.Scope, "submit", 1, count, noon); err != nil {
			t.Fatal(err)
		}
		db := storetest.OpenSQL(t, address)
		if _, err := db.ExecContext(t.Context(), `
			INSERT INTO issued_documents (environment, rnc, encf, taxpayer_id, document_id, range_id, certificate, number_state, security_code, buyer_rnc,
				signed_at, created_at, xml_sha256, sent_sha256, xml)
			SELECT environment, '199000013', 'E32' || substr(document_id, 27), taxpayer_id, document_id, '`+numbers.ID+`', '', 'issued', '', '', 0, 0, lease, lease, lease
			FROM (SELECT environment, taxpayer_id, document_id, cast(lease AS `+map[bool]string{true: "bytea", false: "blob"}[s.Shared()]+`) AS lease FROM jobs) AS j`); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if err := s.OpenLostAttempts(t.Context(), numbers, store.Unsent{}, noon); err != nil {
			t.Fatal(err)
		}
		t.Logf("%d documents, %s", count, time.Since(began))
		var opened int64
		if err := db.QueryRowContext(t.Context(), `SELECT count(*) FROM attempts WHERE closed_at IS NULL`).Scan(&opened); err != nil || opened != count {
			t.Errorf("%d attempts are open, want %d (%v)", opened, count, err)
		}
	})
}

package live

import (
	"crypto"
	"crypto/x509"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/pipeline"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/taxpayer"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

// broken is a key that panics until it is mended.
type broken struct {
	crypto.Signer
	mended bool
}

func (b *broken) Sign(r io.Reader, digest []byte, o crypto.SignerOpts) ([]byte, error) {
	if !b.mended {
		panic("the token is gone")
	}
	return b.Signer.Sign(r, digest, o)
}

// A panic while a document is signed is its stage's failure: the process lives,
// and the next document gets its number.
func TestPanicWhileSigningFailsOneStage(t *testing.T) {
	t.Parallel()
	c := newCrashEnv(t, "sqlite", trials()[0])
	c.begin(t)
	der, err := c.id.PKCS8()
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		t.Fatal(err)
	}
	key, ok := parsed.(crypto.Signer)
	if !ok {
		t.Fatalf("the key is %T", parsed)
	}
	hsm := &broken{Signer: key}
	id, err := xmlsig.NewIdentity(c.id.Certificate, hsm)
	if err != nil {
		t.Fatal(err)
	}
	w := c.service(t, c.store, &points{})
	w.options.Identities = signing{id}
	w.start()
	w.drive(time.Minute)
	w.want(c.inv, "queued")
	hsm.mended = true
	w.drive(time.Hour)
	w.want(c.inv, "queued submitted accepted delivered")
	c.audit(t, w, 1, 0)
}

// order is a new document that wants a number.
func (c *crashEnv) order(t *testing.T, signedAt time.Time) *numberRequest {
	t.Helper()
	c.begin(t)
	request, err := c.store.Request(t.Context(), c.scope, c.inv.ID)
	if err != nil {
		t.Fatal(err)
	}
	inv, err := pipeline.ParseRequest(c.inv, request)
	if err != nil {
		t.Fatal(err)
	}
	facts, err := pipeline.ReadFacts(t.Context(), c.store, c.scope)
	if err != nil {
		t.Fatal(err)
	}
	return &numberRequest{
		job: store.Job{Scope: c.scope, DocumentID: c.inv.DocumentID, Stage: stageIssue}, invoice: inv, issuer: taxpayer.IssuerOf(facts.Taxpayer),
		identity: c.id, signedAt: signedAt,
	}
}

// A document that has gone to another worker gets no number, and those that come
// after it get theirs.
func TestLostLeaseGetsNoNumber(t *testing.T) {
	t.Parallel()
	c := newCrashEnv(t, "sqlite", trials()[0])
	q := c.service(t, c.store, &points{}).plan.queue(queueKey{c.scope, fiscal.FiscalCredit})
	lost, ours := c.order(t, c.clock.Now()), c.order(t, c.clock.Now())
	lost.job.Lease = "another's"
	if err := q.issue(t.Context(), lost); !errors.Is(err, store.ErrLeaseLost) {
		t.Errorf("without a lease: %v", err)
	}
	if err := q.issue(t.Context(), ours); err != nil {
		t.Error(err)
	}
	if got, err := c.store.IssuedDocument(t.Context(), c.scope, ours.job.DocumentID); err != nil || got.ENCF != "E310000000001" {
		t.Errorf("it got %s (%v)", got.ENCF, err)
	}
}

// Documents that were signed before and after midnight share a commit: the range
// must not have expired for any of them.
func TestBatchUsesARangeThatLastsForItsLastSignature(t *testing.T) {
	t.Parallel()
	c := newCrashEnv(t, "sqlite", trials()[0])
	w := c.service(t, c.store, &points{})
	// The last moment of the range's last day, in the country, and the next.
	midnight := time.Date(2028, 1, 1, 4, 0, 0, 0, time.UTC)
	batch := []*numberCall{{Value: c.order(t, midnight.Add(-time.Second))}, {Value: c.order(t, midnight)}}
	w.plan.queue(queueKey{c.scope, fiscal.FiscalCredit}).work(t.Context(), batch)
	for i, o := range batch {
		if err := o.Err; err == nil || err.Error() != "sequence.expired" {
			t.Errorf("order %d: %v, want sequence.expired", i, err)
		}
	}
}

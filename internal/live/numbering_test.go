package live_test

import (
	"crypto"
	"crypto/x509"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/cause"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/live"
	"github.com/fiscalhub/fiscalhub/internal/live/livetest"
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
	w.Options.Identities = livetest.Identities{ID: id}
	w.Start()
	w.Drive(time.Minute)
	w.Want(c.inv, "queued")
	hsm.mended = true
	w.Drive(time.Hour)
	w.Want(c.inv, "queued submitted accepted delivered")
	c.audit(t, w, 1, 0)
}

// order is a new document that wants a number.
func (c *crashEnv) order(t *testing.T, signedAt time.Time) live.Order {
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
	return live.Order{
		Job: store.Job{Scope: c.scope, DocumentID: c.inv.DocumentID, Stage: live.StageIssue}, Invoice: inv, Issuer: taxpayer.IssuerOf(facts.Taxpayer),
		Identity: c.id, SignedAt: signedAt,
	}
}

// A document that has gone to another worker gets no number, and those that come
// after it get theirs.
func TestLostLeaseGetsNoNumber(t *testing.T) {
	t.Parallel()
	c := newCrashEnv(t, "sqlite", trials()[0])
	q := c.service(t, c.store, &points{}).Plan.Numberer(c.scope, fiscal.FiscalCredit)
	lost, ours := c.order(t, c.clock.Now()), c.order(t, c.clock.Now())
	lost.Job.Lease = "another's"
	if errs := q.Issue(t.Context(), lost, ours); !errors.Is(errs[0], store.ErrLeaseLost) || errs[1] != nil {
		t.Errorf("without a lease: %v; with it: %v", errs[0], errs[1])
	}
	if got, err := c.store.IssuedDocument(t.Context(), c.scope, ours.Job.DocumentID); err != nil || got.ENCF != "E310000000001" {
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
	for i, err := range w.Plan.Numberer(c.scope, fiscal.FiscalCredit).Issue(t.Context(), c.order(t, midnight.Add(-time.Second)), c.order(t, midnight)) {
		if err == nil || cause.Of(err) != cause.New(cause.NoNumbers, "sequence.expired") {
			t.Errorf("order %d: %v, want sequence.expired", i, err)
		}
	}
}

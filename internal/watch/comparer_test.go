package watch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

// register is an authority that answers as the test says, and records the questions.
type register struct {
	answers map[string]fiscal.AuthorityAnswer // by number; a number without one is equal
	fail    error
	asked   []string
}

func (r *register) State(_ context.Context, _ *xmlsig.Identity, q fiscal.Query) (fiscal.AuthorityAnswer, error) {
	r.asked = append(r.asked, q.ENCF)
	if a, ok := r.answers[q.ENCF]; ok {
		return a, r.fail
	}
	return fiscal.AuthorityAnswer{Known: true, Verdict: fiscal.VerdictAccepted}, r.fail
}

func (r *register) SummaryState(ctx context.Context, id *xmlsig.Identity, q fiscal.Query) (fiscal.AuthorityAnswer, error) {
	return r.State(ctx, id, q)
}

// anyone is an identity for every taxpayer.
type anyone struct{}

func (anyone) Identity(context.Context, store.Scope, time.Time) (*xmlsig.Identity, error) {
	return &xmlsig.Identity{}, nil
}

// compareEnv is an env with a comparer.
type compareEnv struct {
	*env
	*register
	comparer *Comparer
}

func newCompareEnv(t *testing.T, kind fiscal.Environment) *compareEnv {
	t.Helper()
	c := &compareEnv{env: newEnv(t, storetest.Address(t, "sqlite"), 1), register: &register{answers: map[string]fiscal.AuthorityAnswer{}}}
	var err error
	c.comparer, err = NewComparer(ComparerOptions{
		Store: c.store, Env: kind, Authority: c.lines[0], Lookups: c.register, Identities: anyone{}, PerMinute: 60,
		Now: c.clock.Now, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// accept adds an accepted document that changed some time ago, and returns its number.
func (c *compareEnv) accept(n int, ago time.Duration) string {
	c.t.Helper()
	encf, at := fmt.Sprintf("E31%010d", n), c.clock.Now().Add(-ago).UnixMicro()
	db := storetest.OpenSQL(c.t, c.address)
	for _, statement := range []struct {
		text string
		args []any
	}{
		{`INSERT INTO documents (id, document_id, environment, taxpayer_id, external_id, ecf_type, status, revision, currency, issue_date,
			amounts, document_total, encf, track_id, messages, created_at, updated_at, request)
			VALUES ($1, $1, $2, 't', $1, '31', 'accepted', 1, 'DOP', '2026-11-15', '', '1180.00', $1, NULL, '[]', 0, $3, x'')`,
			[]any{encf, c.comparer.o.Env, at}},
		{`INSERT INTO issued_documents (environment, rnc, encf, taxpayer_id, document_id, range_id, certificate, number_state, security_code, buyer_rnc,
			signed_at, created_at, xml_sha256, sent_sha256, xml, summary)
			VALUES ($2, '199000013', $1, 't', $1, '', '', 'used', 'abc123', '', 0, 0, x'', x'', x'', NULL)`,
			[]any{encf, c.comparer.o.Env}},
	} {
		if _, err := db.ExecContext(c.t.Context(), statement.text, statement.args...); err != nil {
			c.t.Fatal(err)
		}
	}
	return encf
}

// rounds compares so many times, a second apart, and returns the questions.
func (c *compareEnv) rounds(n int) []string {
	c.t.Helper()
	c.asked = nil
	for range n {
		if err := c.comparer.Compare(c.t.Context()); err != nil {
			c.t.Fatal(err)
		}
		c.clock.Advance(time.Second)
	}
	return c.asked
}

// The authority deletes the documents of its test environments, so that old ones are not
// compared there.
func TestOldTestDocumentsAreNotCompared(t *testing.T) {
	t.Parallel()
	for kind, want := range map[fiscal.Environment]int{fiscal.Certification: 1, fiscal.Production: 2} {
		c := newCompareEnv(t, kind)
		c.accept(1, 40*day)
		c.accept(2, 3*day)
		if got := c.rounds(5); len(got) != want {
			t.Errorf("%s: asked about %q, want %d documents", kind, got, want)
		}
	}
}

// Many open differences and a long history do not keep new documents from their first
// comparison.
func TestNewDocumentsAreComparedBesideManyOthers(t *testing.T) {
	t.Parallel()
	c := newCompareEnv(t, fiscal.Production)
	for n := range 20 {
		c.answers[c.accept(n+1, 5*day)] = fiscal.AuthorityAnswer{Known: true, Verdict: fiscal.VerdictRejected}
	}
	c.rounds(30) // each is different
	for n := range 20 {
		c.accept(n+101, 0)
	}
	c.clock.Advance(25 * time.Hour)
	fresh := slices.DeleteFunc(c.rounds(20), func(encf string) bool { return encf < "E310000000101" })
	if len(fresh) < 9 {
		t.Errorf("%d of 20 questions were about new documents, want about half", len(fresh))
	}
}

// A document that cannot be asked about is skipped; a service that does not work keeps
// the position. A wait that the authority asks for is kept, and no longer than that.
func TestFailuresOfAComparison(t *testing.T) {
	t.Parallel()
	c := newCompareEnv(t, fiscal.Production)
	one, two := c.accept(1, 3*day), c.accept(2, 2*day)
	c.fail = errors.Join(fiscal.ErrUnavailable, fiscal.ErrOutage)
	if got := c.rounds(50); !slices.Equal(got, []string{one}) {
		t.Errorf("an outage: asked about %q, want %s once in a minute", got, one)
	}
	c.fail = fmt.Errorf("%w: %w", fiscal.ErrOutage, waitError{})
	c.clock.Advance(time.Minute)
	if got := c.rounds(25); !slices.Equal(got, []string{one, one, one}) {
		t.Errorf("a wait of ten seconds: asked about %q", got)
	}
	c.fail = fiscal.ErrUnavailable
	c.clock.Advance(time.Minute)
	if got := c.rounds(25); !slices.Equal(got, []string{one, two}) {
		t.Errorf("a refusal: asked about %q, want both once", got)
	}
}

// waitError asks for ten seconds.
type waitError struct{}

func (waitError) Error() string       { return "later" }
func (waitError) Wait() time.Duration { return 10 * time.Second }

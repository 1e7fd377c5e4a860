package live_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/event"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/live"
	"github.com/fiscalhub/fiscalhub/internal/live/livetest"
	"github.com/fiscalhub/fiscalhub/internal/pipeline"
	"github.com/fiscalhub/fiscalhub/internal/rejection"
	"github.com/fiscalhub/fiscalhub/internal/simulator"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

// lenient registers what the rules of today refuse, as an older version may have.
type lenient struct{ *live.Plan }

func (lenient) Check(context.Context, store.Scope, *fiscal.Invoice) error { return nil }

func TestDocumentThatFailsValidationTakesNoNumber(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		w := newEnv(t, address, envOptions{})
		w.Engine.Plan = lenient{w.Plan}
		w.StartEngine()
		inv, good := w.CreateOn("1800-01-01", fiscal.FiscalCredit, 1000), w.Create(fiscal.FiscalCredit, 1000)
		w.Drive(time.Hour)
		w.Want(inv, "queued validation_failed")
		if got := w.Read(inv); got.ENCF != "" || len(got.Messages) == 0 || !strings.HasPrefix(got.Messages[0], "issue_date: ") {
			t.Errorf("%+v", got)
		}
		if got := w.Read(good).ENCF; got != "E310000000001" {
			t.Errorf("the next document has %s", got)
		}
	})
}

// A request that an earlier release has registered, and that the rules of today refuse,
// ends with the reason, and the documents behind it go on.
func TestARequestThatTheRulesOfTodayRefuseTakesNoNumber(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		w := newEnv(t, address, envOptions{})
		old := w.Add(map[string]any{
			"ecf_type": "32", "issue_date": "2026-11-14", "currency": "DOP", "payment_type": "cash", "buyer": map[string]any{"legal_name": "Comprador, SRL"},
			"lines": []any{map[string]any{
				"line_id": "1", "description": "Cosa", "item_kind": "product", "quantity": "1", "unit_price": "100", "discount": nil,
				"taxes": []any{map[string]any{"code": "OTRO", "label": "ITBIS", "rate_percent": "18"}},
			}},
			"declared_totals": map[string]any{"subtotal": "100", "discount_total": "0", "tax_total": "18", "total": "118"},
		})
		good := w.Create(fiscal.Consumer, 1000)
		w.Drive(time.Hour)
		w.Want(old, "queued validation_failed")
		if got := w.Read(old); got.ENCF != "" || len(got.Messages) == 0 || !strings.HasPrefix(got.Messages[0], "lines.0.taxes.0.code: ") {
			t.Errorf("%+v", got)
		}
		if got := w.Read(good).ENCF; got != "E320000000001" {
			t.Errorf("the next document has %s", got)
		}
	})
}

// The answer was lost, and the document had been rejected.
func TestLostAnswerOfARejectionEndsRejected(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		w := newEnv(t, address, envOptions{})
		// The first post is judged and then lost.
		_, err := w.Sim.AddRule(simulator.Rule{Match: simulator.Match{Service: simulator.Reception}, Action: simulator.Action{Fault: "F02"}, Count: 1})
		w.Must(err)
		inv := w.Create(fiscal.FiscalCredit, 1000)
		w.Drive(0)
		w.Want(inv, "queued outcome_unknown")
		documents := w.Sim.Documents(simulator.Filter{})
		if len(documents) != 1 {
			t.Fatalf("%d documents at the authority", len(documents))
		}
		w.Must(w.Sim.ForceVerdict(documents[0].TrackID, simulator.Verdict{Code: 2, Used: true, Messages: []simulator.Message{{Code: 176, Text: "no"}}}))
		w.Drive(time.Hour)
		w.Want(inv, "queued outcome_unknown rejected")
		if got := w.Read(inv).Messages; len(got) != 1 || got[0] != "[176] no" {
			t.Errorf("messages %q", got)
		}
		history, err := w.Options.Store.History(t.Context(), w.Scope, inv.ID)
		w.Must(err)
		if last := history[len(history)-1]; last.Cause.String() != "the authority's verdict: [176] no" {
			t.Errorf("the history does not give the reason: %q", last.Cause.String())
		}
		w.Clean()
	})
}

// Every known code that the authority rejects a document with reaches the integrator
// with the authority's words, its meaning and what to do, in both languages.
func TestRejectionByTheAuthorityIsExplained(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		w := newEnv(t, address, envOptions{})
		verdict := simulator.Verdict{Code: 2, Used: true}
		for _, code := range rejection.Codes() {
			number, err := strconv.Atoi(code)
			w.Must(err)
			verdict.Messages = append(verdict.Messages, simulator.Message{Code: number, Text: "palabras " + code})
		}
		w.Rule(1, simulator.RFCE, simulator.Action{Fault: "F17", Verdict: &verdict})
		inv := w.Create(fiscal.Consumer, 1000)
		w.Drive(time.Hour)
		w.Want(inv, "queued rejected")
		got := w.Read(inv)
		for _, language := range []lang.Language{lang.English, lang.Spanish} {
			shown := strings.Join(rejection.Explained(got.Status, got.Messages, language), "\n")
			for _, code := range rejection.Codes() {
				meaning, whatToDo, _ := rejection.Explain(code, language)
				for _, want := range []string{"[" + code + "] palabras " + code, meaning, whatToDo} {
					if !strings.Contains(shown, want) {
						t.Errorf("%s, %s: %q is not shown", code, language, want)
					}
				}
			}
		}
	})
}

// Of two track ids the second says that the number is used.
func TestSecondSubmissionOfAnAcceptedDocumentStaysAccepted(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		w := newEnv(t, address, envOptions{})
		w.Rule(1, simulator.Reception, simulator.Action{Fault: "F13"})
		inv := w.Create(fiscal.FiscalCredit, 1000)
		w.Drive(2 * time.Hour)
		if got := w.Read(inv).Status; got != fiscal.Accepted {
			t.Errorf("%s: %s", got, w.Story(inv))
		}
	})
}

// The authority stores one submission twice, accepts the first copy conditionally, and
// gives us the track id of the second one, which it rejects. Only the list of track ids
// shows the first one: a look-up by number does not tell a conditional acceptance from
// another one. While the list does not answer, the document does not become accepted.
func TestFirstCopyOfASubmissionThatIsAcceptedConditionally(t *testing.T) {
	t.Parallel()
	for name, outages := range map[string]int{"the list answers": 0, "the list is out of reach at first": 2} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.EachAddress(t, func(t *testing.T, address string) {
				w := newEnv(t, address, envOptions{})
				w.Rule(1, simulator.Reception, simulator.Action{Fault: "F13", Variant: "second", Verdict: &simulator.Verdict{Code: 4}})
				if outages > 0 {
					w.Rule(outages, simulator.TrackIDs, simulator.Action{Fault: "F05"})
				}
				inv := w.Create(fiscal.FiscalCredit, 1000)
				w.Drive(2 * time.Hour)
				if got := w.Read(inv).Status; got != fiscal.AcceptedConditional || strings.Contains(w.Story(inv)+" ", " accepted ") {
					t.Errorf("%s: %s", got, w.Story(inv))
				}
			})
		})
	}
}

// oldLists lets the first lists of track ids lack all but the last one, as if they were
// read just before the authority showed the others.
type oldLists struct {
	live.Authority
	left atomic.Int32
}

func (o *oldLists) TrackIDs(ctx context.Context, id *xmlsig.Identity, q fiscal.Query) ([]fiscal.AuthorityAnswer, error) {
	all, err := o.Authority.TrackIDs(ctx, id, q)
	if len(all) > 1 && o.left.Add(-1) >= 0 {
		all = all[len(all)-1:]
	}
	return all, err
}

// The look-up by number shows that our document is accepted, and the list of track ids that
// was read before it has no accepted one. The list is read again, because the acceptance may
// be conditional. When many lists lack it, the acceptance counts without one.
func TestAnAcceptanceThatTheListLacks(t *testing.T) {
	t.Parallel()
	cases := []struct {
		code, oldLists int
		want           fiscal.Status
	}{
		{1, 3, fiscal.Accepted},
		{4, 3, fiscal.AcceptedConditional},
		{4, 1000, fiscal.Accepted},
	}
	for _, c := range cases {
		t.Run(fmt.Sprintf("code %d after %d old lists", c.code, c.oldLists), func(t *testing.T) {
			t.Parallel()
			storetest.EachAddress(t, func(t *testing.T, address string) {
				w := newEnv(t, address, envOptions{})
				lists := &oldLists{Authority: w.Client}
				lists.left.Store(int32(c.oldLists))
				w.Options.Authority = lists
				w.Start()
				w.Rule(1, simulator.Reception, simulator.Action{Fault: "F13", Variant: "second", Verdict: &simulator.Verdict{Code: c.code}})
				inv := w.Create(fiscal.FiscalCredit, 1000)
				w.Drive(2 * time.Hour)
				if got := w.Read(inv).Status; got != c.want {
					t.Errorf("status %s, want %s: %s", got, c.want, w.Story(inv))
				}
				if c.want == fiscal.AcceptedConditional && strings.Contains(w.Story(inv)+" ", " accepted ") {
					t.Errorf("the document was accepted before it was accepted conditionally: %s", w.Story(inv))
				}
				if used := int32(c.oldLists) - lists.left.Load(); used < 3 {
					t.Errorf("%d old lists were read, want at least 3", used)
				}
			})
		})
	}
}

// wallet is an identity that changes.
type wallet struct {
	mu sync.Mutex
	id *xmlsig.Identity
}

func (s *wallet) Identity(_ context.Context, _ store.Scope, at time.Time) (*xmlsig.Identity, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.id, s.id.Check(at)
}

// The certificate expires with documents signed and unsigned, and
// another is installed. What was signed goes out as it is.
func TestDocumentsWaitForANewCertificate(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		w := newEnv(t, address, envOptions{})
		certificate := func(days int) *xmlsig.Identity {
			file, err := w.Sim.IssueCertificate(simulator.CertificateRequest{Holder: livetest.Holder, Days: days})
			w.Must(err)
			id, err := xmlsig.OpenP12(file.P12, file.Password)
			w.Must(err)
			return id
		}
		keys := &wallet{id: certificate(30)}
		w.Options.Identities = keys
		w.Start()
		w.Must(w.Sim.Configure(func(c *simulator.Config) { c.Maintenance = true }))
		const documents = 5
		var signed, unsigned []store.Invoice
		before := map[string]string{}
		for range documents {
			signed = append(signed, w.Create(fiscal.FiscalCredit, 1000))
		}
		w.Drive(0)
		for _, inv := range signed {
			before[inv.ID] = w.Bytes(inv)
		}
		for range documents {
			unsigned = append(unsigned, w.Create(fiscal.FiscalCredit, 1000))
		}
		w.Clock.Advance(keys.id.Certificate.NotAfter.Sub(w.Now()) + time.Hour)
		w.Drive(time.Hour)
		for _, inv := range unsigned {
			if got := w.Read(inv).ENCF; got != "" {
				t.Errorf("%s was signed with an expired certificate", got)
			}
		}
		renewed := certificate(300)
		keys.mu.Lock()
		keys.id = renewed
		keys.mu.Unlock()
		w.Must(w.Store().Update(t.Context(), func(tx *store.Tx) error {
			_, err := tx.AddCertificate(t.Context(), store.Certificate{
				Scope: w.Scope, ID: store.NewID(), DER: renewed.Certificate.Raw, Sealed: []byte("elsewhere"),
				NotBefore: renewed.Certificate.NotBefore, NotAfter: renewed.Certificate.NotAfter, CreatedAt: w.Now(),
			})
			return err
		}))
		w.Must(w.Sim.Configure(func(c *simulator.Config) { c.Maintenance = false }))
		w.Drive(24 * time.Hour)
		for _, inv := range signed {
			if w.Bytes(inv) != before[inv.ID] {
				t.Errorf("%s was signed and has changed", inv.ExternalID)
			}
			// This authority wants a certificate that is good on arrival, too.
			w.Want(inv, "queued submitted rejected")
			wantNumber(store.NumberReusable)(t, w, inv)
		}
		for _, inv := range unsigned {
			w.Want(inv, "queued submitted accepted")
		}
		w.Clean()
	})
}

// Many documents are signed on several nodes at once.
func TestParallelNodesIssueEachNumberOnce(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		const documents = 60
		w := newEnv(t, address, envOptions{})
		made := make([]store.Invoice, documents)
		for i := range made {
			made[i] = w.Create(fiscal.Consumer, 1000)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		for _, node := range []*pipeline.Pipeline{w.Pipeline, w.otherNode().Pipeline, w.otherNode().Pipeline, w.otherNode().Pipeline} {
			running.Go(func() { node.Run(ctx) })
		}
		deadline := time.Now().Add(time.Minute)
		for time.Now().Before(deadline) {
			left := 0
			for _, inv := range made {
				if !w.Read(inv).Status.Final() {
					left++
				}
			}
			if left == 0 {
				break
			}
			w.Clock.Advance(time.Second)
			time.Sleep(20 * time.Millisecond)
		}
		cancel()
		running.Wait()
		seen := map[string]bool{}
		for _, inv := range made {
			seen[w.Read(inv).ENCF] = true
		}
		for n := 1; n <= documents; n++ {
			if encf := fmt.Sprintf("E32%010d", n); !seen[encf] {
				t.Errorf("%s is missing", encf)
			}
		}
		if len(seen) != documents {
			t.Errorf("%d numbers for %d documents", len(seen), documents)
		}
	})
}

// A buyerCase is what a directory or a buyer answers, and what becomes of a
// document of theirs.
type buyerCase struct {
	name    string
	service simulator.Service
	action  simulator.Action
	story   string
	failed  bool // an event says that delivery failed
}

func (b buyerCase) check(t *testing.T, address string) {
	t.Helper()
	w := newEnv(t, address, envOptions{Receiver: true})
	w.Rule(0, b.service, b.action)
	inv := w.Create(fiscal.FiscalCredit, 1000)
	w.Drive(48 * time.Hour)
	w.Want(inv, b.story)
	if got := strings.Count(w.Kinds(inv), event.DeliveryFailed); got != map[bool]int{true: 1}[b.failed] {
		t.Errorf("%d events that delivery failed", got)
	}
	w.Clean()
}

// What directories answer.
func TestDeliverAsksTheDirectory(t *testing.T) {
	t.Parallel()
	for _, tt := range []buyerCase{
		{"no entry", simulator.Directory, simulator.Action{Fault: "F24", Variant: "null"}, "queued submitted accepted", false},
		{"an empty answer", simulator.Directory, simulator.Action{Fault: "F24", Variant: "empty"}, "queued submitted accepted", false},
		{"an object for an array", simulator.Directory, simulator.Action{Fault: "F24", Variant: "swap"}, "queued submitted accepted delivered", false},
		{"a private address", simulator.Directory, simulator.Action{Fault: "F24", Variant: "private"}, "queued submitted accepted", true},
		{"an address without encryption", simulator.Directory, simulator.Action{Fault: "F24", Variant: "http"}, "queued submitted accepted", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			storetest.EachAddress(t, tt.check)
		})
	}
}

// The directory is out of order when the document is to be delivered, so that the buyer is
// not called. Later the buyer says that it has the document already: somebody else has sent
// it. Ours was not delivered.
func TestDuplicateBeforeOurFirstDeliveryIsNoReceipt(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		w := newEnv(t, address, envOptions{Receiver: true})
		w.Rule(2, simulator.Directory, simulator.Action{Fault: "F05"})
		w.Rule(0, simulator.PeerReception, simulator.Action{Fault: "peer", Variant: "arecf-3"})
		inv := w.Create(fiscal.FiscalCredit, 1000)
		w.Drive(48 * time.Hour)
		w.Want(inv, "queued submitted accepted")
		if got := strings.Count(w.Kinds(inv), event.DeliveryFailed); got != 1 {
			t.Errorf("%d events that delivery failed, want 1", got)
		}
		w.Clean()
	})
}

// The same while the taxpayer has no valid certificate.
func TestDuplicateBeforeADeliveryWithACertificateIsNoReceipt(t *testing.T) {
	t.Parallel()
	w := newEnv(t, storetest.Address(t, "sqlite"), envOptions{Receiver: true})
	missing := false
	w.Options.Identities = missingIdentity{w.Options.Identities, &missing}
	w.Options.Authority = livetest.WatchedAuthority{Authority: w.Client, Asked: func() {
		missing = true
		w.Clock.Advance(2 * time.Second) // identities are cached for a moment
	}}
	w.Start()
	w.Rule(0, simulator.PeerReception, simulator.Action{Fault: "peer", Variant: "arecf-3"})
	inv := w.Create(fiscal.FiscalCredit, 1000)
	w.Drive(48 * time.Hour)
	w.Want(inv, "queued submitted accepted")
	if missing {
		t.Error("no stage lacked the certificate")
	}
}

// missingIdentity has no identity once when missing is set.
type missingIdentity struct {
	live.Identities
	missing *bool
}

func (m missingIdentity) Identity(ctx context.Context, scope store.Scope, at time.Time) (*xmlsig.Identity, error) {
	if *m.missing {
		*m.missing = false
		return nil, errors.New("the certificate has expired")
	}
	return m.Identities.Identity(ctx, scope, at)
}

// What buyers answer.
func TestDeliverHandlesBuyers(t *testing.T) {
	t.Parallel()
	for _, tt := range []buyerCase{
		{"not received, specification", simulator.PeerReception, simulator.Action{Fault: "peer", Variant: "arecf-1"}, "queued submitted accepted", true},
		{"not received, signature", simulator.PeerReception, simulator.Action{Fault: "peer", Variant: "arecf-2"}, "queued submitted accepted", true},
		{"not received, sent twice", simulator.PeerReception, simulator.Action{Fault: "peer", Variant: "arecf-3"}, "queued submitted accepted", true},
		{"not received, another's", simulator.PeerReception, simulator.Action{Fault: "peer", Variant: "arecf-4"}, "queued submitted accepted", true},
		{"an acknowledgement of another", simulator.PeerReception, simulator.Action{Fault: "peer", Variant: "other-encf"}, "queued submitted accepted", false},
		{"unsigned", simulator.PeerReception, simulator.Action{Fault: "peer", Variant: "unsigned"}, "queued submitted accepted", false},
		{"indented after signing", simulator.PeerReception, simulator.Action{Fault: "peer", Variant: "indented"}, "queued submitted accepted delivered", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			storetest.EachAddress(t, tt.check)
		})
	}
}

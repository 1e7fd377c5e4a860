package receiver_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/receiver"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig/xmlsigtest"
)

// A stranger has no certificate of a trusted authority. Whatever he sends to a service,
// he is refused, and the answer does not tell whether a taxpayer is one of this service.
func TestStrangersLearnNothingFromTheServices(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	elsewhere := newEnv(t, func(o *receiver.Options) { o.Keys = keys(8) })
	foreign := elsewhere.token(peer().Identity)
	expired := e.token(peer().Identity)
	e.advance(2 * time.Hour)
	ca, err := xmlsigtest.NewCA("Autoridad Desconocida")
	if err != nil {
		t.Fatal(err)
	}
	stranger := mustLeaf(xmlsigtest.Options{CA: ca}).Identity
	const unknown = "101000000" // RNC of nobody here
	documents := map[string]map[string][2]string{}
	for path, text := range map[string]string{receptionPath: invoiceXML, approvalPath: responseXML} {
		other := edit(t, text, ours, unknown)
		documents[path] = map[string][2]string{
			"unsigned":                {text, other},
			"signed by a stranger":    {sign(t, stranger, text), sign(t, stranger, other)},
			"changed after signing":   {edit(t, sign(t, peer().Identity, text), encf, "E310000000059"), edit(t, sign(t, peer().Identity, other), encf, "E310000000059")},
			"a document without form": {"<x>" + ours + "</x>", "<x>" + unknown + "</x>"},
		}
	}
	seed := e.seed()
	documents[tokenPath] = map[string][2]string{
		"unsigned": {seed, seed}, "signed by a stranger": {sign(t, stranger, seed), sign(t, stranger, seed)},
		"no seed": {sign(t, peer().Identity, invoiceXML), sign(t, peer().Identity, invoiceXML)},
	}
	for path, cases := range documents {
		for token, header := range map[string][]string{
			"no token": nil, "a malformed token": {"Authorization", "Bearer x"}, "another scheme": {"Authorization", "Basic x"},
			"a token of another receiver": {"Authorization", "Bearer " + foreign}, "an expired token": {"Authorization", "Bearer " + expired},
		} {
			for name, pair := range cases {
				known, other := e.post(path, pair[0], header...), e.post(path, pair[1], header...)
				if known.status != http.StatusBadRequest || known.body != other.body || other.status != known.status {
					t.Errorf("%s, %s, %s: %d %s, and for an unknown taxpayer %d %s", path, token, name, known.status, known.body, other.status, other.body)
				}
				known.message(t)
			}
		}
	}
	if e.calls != 0 || len(e.responses) != 0 || len(e.used) != 1 {
		t.Errorf("%d look-ups of taxpayers, %d responses and %d used seeds; want 0, 0 and 1", e.calls, len(e.responses), len(e.used))
	}
}

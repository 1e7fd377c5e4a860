package receiver_test

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/fiscalhub/fiscalhub/internal/reply"
)

func TestApprovalStoresTheResponse(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	document := sign(t, peer().Identity, responseXML)
	a := e.post(approvalPath, document)
	if a.status != http.StatusOK || a.body != `{"estado":"OK"}` || a.header.Get("Content-Type") != "application/json; charset=utf-8" {
		t.Fatalf("%d %v %s", a.status, a.header, a.body)
	}
	if len(e.responses) != 1 || e.responses[0].ENCF != encf || !e.responses[0].Accepted || "<?xml version=\"1.0\" encoding=\"utf-8\"?>"+string(e.responses[0].XML) != document {
		t.Errorf("%+v", e.responses)
	}
}

func TestApprovalRefusesInvalidDocuments(t *testing.T) {
	t.Parallel()
	good := sign(t, peer().Identity, responseXML)
	for name, document := range map[string]string{
		"not signed":             responseXML,
		"changed":                edit(t, good, "<Estado>1", "<Estado>2"),
		"an untrusted signature": sign(t, own().Identity, responseXML),
		"another document":       sign(t, peer().Identity, invoiceXML),
		"another order":          sign(t, peer().Identity, edit(t, responseXML, "<Version>1.0</Version>", "", "</RNCEmisor>", "</RNCEmisor><Version>1.0</Version>")),
		"nothing":                "",
		"larger than a few KiB":  good + string(make([]byte, 256<<10)),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEnv(t)
			a := e.post(approvalPath, document)
			if a.status != http.StatusBadRequest || len(e.responses) > 0 {
				t.Errorf("%d %s, %d kept", a.status, a.body, len(e.responses))
			}
			a.message(t)
		})
	}
}

func TestApprovalAnswersByTheErrorOfTheStore(t *testing.T) {
	t.Parallel()
	texts := map[string]bool{}
	for _, c := range []struct {
		err    error
		status int
	}{
		{fmt.Errorf("pipeline: %w", reply.ErrNoDocument), http.StatusBadRequest},
		{fmt.Errorf("pipeline: %w", reply.ErrMismatch), http.StatusBadRequest},
		{fmt.Errorf("buyer: %w", reply.ErrTooMany), http.StatusBadRequest},
		{errors.New("the database is down"), http.StatusServiceUnavailable},
	} {
		e := newEnv(t)
		e.responseErr = c.err
		a := e.post(approvalPath, sign(t, peer().Identity, responseXML))
		if a.status != c.status || (a.header.Get("Retry-After") != "") != (c.status == http.StatusServiceUnavailable) {
			t.Errorf("%v: %d %v", c.err, a.status, a.header)
		}
		if text := a.message(t); c.status == http.StatusBadRequest && !errors.Is(c.err, reply.ErrTooMany) {
			texts[text] = true
		}
	}
	if len(texts) != 1 {
		t.Errorf("the answers reveal which documents exist: %v", texts)
	}
}

package receiver_test

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/fiscalhub/fiscalhub/internal/reply"
)

func TestApproval(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	document := sign(t, peer().Identity, responseXML)
	a := w.post(approvalPath, document)
	if a.status != http.StatusOK || a.body != `{"estado":"OK"}` || a.header.Get("Content-Type") != "application/json; charset=utf-8" {
		t.Fatalf("%d %v %s", a.status, a.header, a.body)
	}
	if len(w.responses) != 1 || w.responses[0].ENCF != encf || !w.responses[0].Accepted || string(w.responses[0].XML) != document {
		t.Errorf("%+v", w.responses)
	}
}

func TestApprovalRefuses(t *testing.T) {
	t.Parallel()
	good := sign(t, peer().Identity, responseXML)
	for name, document := range map[string]string{
		"not signed":            responseXML,
		"changed":               edit(t, good, "<Estado>1", "<Estado>2"),
		"signed by a stranger":  sign(t, own().Identity, responseXML),
		"another document":      sign(t, peer().Identity, invoiceXML),
		"another order":         sign(t, peer().Identity, edit(t, responseXML, "<Version>1.0</Version>", "", "</RNCEmisor>", "</RNCEmisor><Version>1.0</Version>")),
		"nothing":               "",
		"larger than a few KiB": good + string(make([]byte, 256<<10)),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			a := w.post(approvalPath, document)
			if a.status != http.StatusBadRequest || len(w.responses) > 0 {
				t.Errorf("%d %s, %d kept", a.status, a.body, len(w.responses))
			}
			a.message(t)
		})
	}
}

func TestApprovalOutcomes(t *testing.T) {
	t.Parallel()
	said := map[string]bool{}
	for _, c := range []struct {
		err    error
		status int
	}{
		{fmt.Errorf("pipeline: %w", reply.ErrNoDocument), http.StatusBadRequest},
		{fmt.Errorf("pipeline: %w", reply.ErrMismatch), http.StatusBadRequest},
		{errors.New("the database is down"), http.StatusServiceUnavailable},
	} {
		w := newWorld(t)
		w.responseErr = c.err
		a := w.post(approvalPath, sign(t, peer().Identity, responseXML))
		if a.status != c.status || (a.header.Get("Retry-After") != "") != (c.status == http.StatusServiceUnavailable) {
			t.Errorf("%v: %d %v", c.err, a.status, a.header)
		}
		if text := a.message(t); c.status == http.StatusBadRequest {
			said[text] = true
		}
	}
	if len(said) != 1 {
		t.Errorf("the answers tell which documents there are: %v", said)
	}
}

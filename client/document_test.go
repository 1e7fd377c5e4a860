package client

import (
	"errors"
	"net/http"
	"testing"
)

const document = `{"id":"` + someID + `","status":"accepted","encf":null,"track_id":null,"status_messages":[],` +
	`"links":{"self":"https://a/s","xml":"https://a/x","pdf":"https://a/p"}}`

func TestDocument(t *testing.T) {
	t.Parallel()
	c, s := start(t, nil, reply(http.StatusOK, `{"data":`+document+`,"meta":{"request_id":"req_1"}}`))
	got, err := c.Document(testContext(t), someID)
	if err != nil {
		t.Fatal(err)
	}
	d := got.Data
	if d.ID != someID || d.Status != Accepted || d.ENCF != "" || d.TrackID != "" || d.Links != (Links{"https://a/s", "https://a/x", "https://a/p"}) {
		t.Errorf("got %+v", d)
	}
	if want := "/v1/taxpayers/" + taxpayer + "/fiscal-documents/" + someID; s.seen[0].uri != want {
		t.Errorf("asked for %s, want %s", s.seen[0].uri, want)
	}
	if _, err := c.Document(testContext(t), ".."); err == nil {
		t.Error("a path was accepted as an id")
	}
}

func TestFindDocument(t *testing.T) {
	t.Parallel()
	c, s := start(t, nil,
		reply(http.StatusOK, `{"data":[`+document+`],"meta":{"request_id":"req_1"}}`),
		reply(http.StatusOK, `{"data":[],"meta":{"request_id":"req_2"}}`),
		reply(http.StatusBadRequest, failure(CodeBadRequest)))
	got, err := c.FindDocument(testContext(t), "F/1 &")
	if err != nil || got.Data.ID != someID {
		t.Errorf("got %+v, %v", got, err)
	}
	if want := "/v1/taxpayers/" + taxpayer + "/fiscal-documents?external_id=F%2F1+%26"; s.seen[0].uri != want {
		t.Errorf("asked for %s, want %s", s.seen[0].uri, want)
	}
	got, err = c.FindDocument(testContext(t), "F-2")
	if !errors.Is(err, ErrNoDocument) || got.Meta.OriginRequestID != "req_2" {
		t.Errorf("none: %+v, err = %v, want ErrNoDocument", got, err)
	}
	if _, err = c.FindDocument(testContext(t), ""); err == nil || errors.Is(err, ErrNoDocument) {
		t.Errorf("refused: err = %v, want the answer", err)
	}
}

func TestArtifactsAreDownloaded(t *testing.T) {
	t.Parallel()
	c, s := start(t, nil,
		reply(http.StatusOK, "<ECF/>"),
		reply(http.StatusOK, "%PDF-1.7"),
		reply(http.StatusConflict, failure(CodeArtifactNotReady), "Retry-After", "5"),
		reply(http.StatusOK, "%PDF-1.7"))
	if got, err := c.DocumentXML(testContext(t), someID); err != nil || string(got.Data) != "<ECF/>" || got.Meta.RequestID == "" {
		t.Errorf("XML: %+v, %v", got, err)
	}
	if got, err := c.DocumentPDF(testContext(t), someID); err != nil || string(got.Data) != "%PDF-1.7" {
		t.Errorf("PDF: %+v, %v", got, err)
	}
	_, err := c.DocumentPDF(testContext(t), someID)
	if e, ok := asError(err); !ok || e.Code != CodeArtifactNotReady || len(s.seen) != 3 {
		t.Errorf("not ready: err = %v after %d requests", err, len(s.seen))
	}
	if got, err := c.DocumentPDFIn(testContext(t), someID, Receipt58); err != nil || string(got.Data) != "%PDF-1.7" {
		t.Errorf("receipt: %+v, %v", got, err)
	}
	for i, want := range []string{"/xml", "/pdf", "/pdf", "/pdf?format=receipt58"} {
		if got := s.seen[i].uri; got != "/v1/taxpayers/"+taxpayer+"/fiscal-documents/"+someID+want {
			t.Errorf("asked for %s", got)
		}
	}
	if _, err := c.DocumentXML(testContext(t), "x"); err == nil {
		t.Error("an empty id was accepted")
	}
}

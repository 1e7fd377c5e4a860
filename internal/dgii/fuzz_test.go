package dgii

import (
	"testing"
	"unicode/utf8"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

// FuzzAnswer gives arbitrary responses to every reader. None may panic, and answers
// must stay within their limits.
func FuzzAnswer(f *testing.F) {
	for _, tt := range refusals {
		if len(tt.body) < 1<<10 {
			f.Add(tt.status, []byte(tt.body))
		}
	}
	f.Add(200, []byte(`[{"trackId":"a","estado":"Aceptado"}]`))
	f.Add(200, []byte(`{"rnc":"131256432","urlRecepcion":"https://a.example.com"}`))
	f.Add(200, []byte(`{"codigo":1,"estado":"Aceptado","montoTotal":1e400,"fechaEmision":"31-02-2026"}`))
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		rep := &response{status: status, body: body}
		check := func(a fiscal.AuthorityAnswer) {
			if len(a.Messages) > maxMessages || len(a.Raw) > maxRaw {
				t.Fatalf("%d messages, %d bytes", len(a.Messages), len(a.Raw))
			}
			for _, m := range a.Messages {
				if utf8.RuneCountInString(m.Text) > maxMessageText || !utf8.ValidString(m.Text) || !utf8.ValidString(m.Code) {
					t.Fatalf("message %q", m)
				}
			}
		}
		for _, read := range []answerReader{readReception, readSummaryReception} {
			a := rep.newAnswer()
			err := readSubmission(rep, shipment(), read, &a)
			check(a)
			switch {
			case err != nil && a.Known:
				t.Fatal("an error together with a verdict")
			case err == nil && status >= 300 && (!a.Known || a.Verdict != fiscal.VerdictRejected || len(a.Messages) == 0 && !a.Known):
				t.Fatalf("HTTP %d was read as %+v", status, a)
			case err == nil && !a.Known && a.TrackID == "":
				t.Fatal("the answer has neither a verdict nor a track id")
			case err == nil && (status < 200 || status > 499):
				t.Fatalf("HTTP %d was read as an answer", status)
			}
		}
		s := &service{name: "fuzz", absence: &absence{production: true}}
		v, err := s.parseLookup(rep)
		if err != nil {
			return
		}
		list, _ := readTrackIDs(rep, v, query())
		for _, a := range list {
			check(a)
			if a.TrackID == "" {
				t.Fatal("an answer in the list has no track id")
			}
		}
		if r, listed, ok := readDirectory(status, v, "131256432"); listed && (!ok || r.Reception == "") {
			t.Fatalf("%+v", r)
		}
		_, _ = v.verdict()
	})
}

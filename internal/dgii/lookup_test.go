package dgii

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

func query() fiscal.Query {
	return fiscal.Query{RNC: "131256432", ENCF: "E310000000058", BuyerRNC: "101010101", SecurityCode: "a+/=1&"}
}

func TestLookUpVerdicts(t *testing.T) {
	t.Parallel()
	known := func(v fiscal.Verdict, messages ...fiscal.Message) fiscal.AuthorityAnswer {
		return fiscal.AuthorityAnswer{Known: true, Verdict: v, Messages: messages}
	}
	table := []submission{
		{"accepted as served", 200, `{"trackId":"t-1","codigo":"1","estado":"Aceptado","rnc":"131256432","encf":"E310000000058","secuenciaUtilizada":true,"fechaRecepcion":"10/8/2026 11:22:49 AM","mensajes":[{"valor":"","codigo":0}]}`,
			fiscal.AuthorityAnswer{Known: true, Verdict: fiscal.VerdictAccepted, TrackID: "t-1", NumberUsed: true, NumberStated: true}, nil},
		{"conditional as documented", 200, `{"codigo":4,"estado":"Aceptado condicional","eNCF":"E310000000058","mensajes":[{"valor":"x","codigo":1385}]}`,
			known(fiscal.VerdictConditional, fiscal.Message{Code: "1385", Text: "x"}), nil},
		{"rejected", 200, `{"codigo":2,"estado":"Rechazado","mensajes":[{"codigo":64}]}`, known(fiscal.VerdictRejected, fiscal.Message{Code: "64"}), nil},
		{"in process", 200, `{"codigo":"3","estado":"En  proceso"}`, known(fiscal.VerdictInProcess), nil},
		{"not found", 200, `{"codigo":0,"estado":"No encontrado"}`, known(fiscal.VerdictNotFound), nil},
		{"not found with 404", 404, `{"codigo":0,"estado":"No Encontrado."}`, known(fiscal.VerdictNotFound), nil},
		{"state alone", 200, `{"estado":"Aceptado"}`, known(fiscal.VerdictAccepted), nil},
		{"code alone", 200, `{"codigo":1}`, known(fiscal.VerdictAccepted), nil},

		{"empty record", 200, `{"codigo":0,"estado":null,"rnc":null}`, fiscal.AuthorityAnswer{}, fiscal.ErrUnavailable},
		{"contradiction", 200, `{"codigo":1,"estado":"Rechazado"}`, fiscal.AuthorityAnswer{}, fiscal.ErrUnavailable},
		{"unknown code", 200, `{"codigo":7,"estado":"Aceptado"}`, fiscal.AuthorityAnswer{}, fiscal.ErrUnavailable},
		{"code that is no number", 200, `{"codigo":1.5}`, fiscal.AuthorityAnswer{}, fiscal.ErrUnavailable},
		{"unknown state", 200, `{"codigo":1,"estado":"Quizás"}`, fiscal.AuthorityAnswer{}, fiscal.ErrUnavailable},
		{"accepted with 400", 400, `{"codigo":1,"estado":"Aceptado"}`, fiscal.AuthorityAnswer{}, fiscal.ErrUnavailable},
		{"empty object", 200, `{}`, fiscal.AuthorityAnswer{}, fiscal.ErrUnavailable},
		{"null", 200, `null`, fiscal.AuthorityAnswer{}, fiscal.ErrUnavailable},
		{"nothing", 200, ``, fiscal.AuthorityAnswer{}, fiscal.ErrUnavailable},
		{"page", 200, htmlPage, fiscal.AuthorityAnswer{}, fiscal.ErrUnavailable},
		{"sentence", 400, `"El RNC del token no está autorizado"`, fiscal.AuthorityAnswer{}, fiscal.ErrUnavailable},
		{"500", 500, `{"codigo":1,"estado":"Aceptado"}`, fiscal.AuthorityAnswer{}, fiscal.ErrUnavailable},
		{"redirect", 302, ``, fiscal.AuthorityAnswer{}, fiscal.ErrUnavailable},
		{"401 again and again", 401, ``, fiscal.AuthorityAnswer{}, fiscal.ErrUnavailable},
		{"429", 429, ``, fiscal.AuthorityAnswer{}, fiscal.ErrUnavailable},
		{"5 MB", 200, `{"codigo":1,"x":"` + strings.Repeat("x", 5<<20) + `"}`, fiscal.AuthorityAnswer{}, fiscal.ErrUnavailable},
		{"404 with nothing", 404, ``, fiscal.AuthorityAnswer{}, fiscal.ErrUnavailable},
		{"404 with a page", 404, htmlPage, fiscal.AuthorityAnswer{}, fiscal.ErrUnavailable},
		{"404 with a problem object", 404, `{"type":"x","title":"Not Found","status":404}`, fiscal.AuthorityAnswer{}, fiscal.ErrUnavailable},
	}
	for _, tt := range table {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newEnv(t, answer(tt.status, tt.body))
			for name, ask := range map[string]func(*Client) (fiscal.AuthorityAnswer, error){
				"result": func(c *Client) (fiscal.AuthorityAnswer, error) { return c.Result(testContext(t), signer(t), "T-1") },
				"state":  func(c *Client) (fiscal.AuthorityAnswer, error) { return c.State(testContext(t), signer(t), query()) },
				"summary": func(c *Client) (fiscal.AuthorityAnswer, error) {
					return c.SummaryState(testContext(t), signer(t), query())
				},
			} {
				got, err := ask(s.client(t))
				wantError(t, err, tt.wantErr)
				if err != nil {
					continue
				}
				got.Raw, got.At, got.RNC, got.ENCF = nil, tt.want.At, "", ""
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Errorf("%s: %s", name, diff)
				}
			}
		})
	}
}

func TestLookUpRefusesAnswersAboutOtherDocuments(t *testing.T) {
	t.Parallel()
	s := newEnv(t, nil)
	c := s.client(t)
	for _, who := range []string{`"rncEmisor":"131256433"`, `"ncfElectronico":"E310000000059"`, `"encf":"E310000000059"`, `"rnc":"1"`} {
		s.respond(answer(200, `{"codigo":1,"estado":"Aceptado",`+who+`}`))
		_, err := c.State(testContext(t), signer(t), query())
		wantError(t, err, fiscal.ErrUnavailable)
		_, err = c.SummaryState(testContext(t), signer(t), query())
		wantError(t, err, fiscal.ErrUnavailable)
	}
	s.respond(answer(200, `{"codigo":1,"estado":"Aceptado","trackId":"other"}`))
	_, err := c.Result(testContext(t), signer(t), "t-1")
	wantError(t, err, fiscal.ErrUnavailable)
}

// The caller compares these fields with its document to see that the number is its
// own.
func TestStateReturnsTheFieldsOfTheDocument(t *testing.T) {
	t.Parallel()
	s := newEnv(t, func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		if q.Get("rncemisor") != "131256432" || q.Get("ncfelectronico") != "E310000000058" || q.Get("rnccomprador") != "101010101" || q.Get("codigoseguridad") != "a+/=1&" {
			t.Errorf("request to %s", r.URL)
		}
		answer(200, `{"codigo":1,"estado":"Aceptado","rncEmisor":"131256432","ncfElectronico":"E310000000058","montoTotal":1180.50,"totalITBIS":180.5,"fechaEmision":"05-10-2026","fechaFirma":"x","rncComprador":"101010101","codigoSeguridad":"a+/=1&","idExtranjero":null}`)(w, r)
	})
	got, err := s.client(t).State(testContext(t), signer(t), query())
	if err != nil {
		t.Fatal(err)
	}
	if !got.HasTotal || got.Total.StringFixed(2) != "1180.50" || got.SecurityCode != "a+/=1&" || got.IssueDate.String() != "2026-10-05" {
		t.Errorf("%+v", got)
	}
	for text, want := range map[string]string{"2026-10-05T00:00:00": "2026-10-05", "10/5/2026": fiscal.Date{}.String(), "": fiscal.Date{}.String()} {
		if got := parseDate(text).String(); got != want {
			t.Errorf("parseDate(%q) = %s, want %s", text, got, want)
		}
	}
}

func TestTrackIDsReadsLists(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		status int
		body   string
		want   string
		err    error
	}{
		{"two", 200, `[{"trackId":"a","estado":"Aceptado","fechaRecepcion":"x"},{"trackId":"b","estado":"Rechazado"}]`, "[a=1 b=2]", nil},
		{"one object", 200, `{"TrackId":"a","Estado":"En Proceso"}`, "[a=3]", nil},
		{"state of its own", 200, `[{"trackId":"a","estado":"Recibido"}]`, "[a]", nil},
		{"none", 200, `[]`, "[]", nil},
		{"none, as a text", 200, `[{"trackId":null,"estado":"No encontrado","fechaRecepcion":null}]`, "[]", nil},
		{"none with 404", 404, `{"trackId":null,"estado":"TrackId no encontrado."}`, "[]", nil},
		{"none with 400", 400, `{"estado":"TrackId no encontrado."}`, "[]", nil},
		{"entry without anything", 200, `[{"trackId":null,"estado":null}]`, "", fiscal.ErrUnavailable},
		{"empty object", 200, `{}`, "", fiscal.ErrUnavailable},
		{"null", 200, `null`, "", fiscal.ErrUnavailable},
		{"nothing", 200, ``, "", fiscal.ErrUnavailable},
		{"page", 200, htmlPage, "", fiscal.ErrUnavailable},
		{"refused", 400, `{"mensaje":"RNC requerido"}`, "", fiscal.ErrUnavailable},
		{"sentence", 400, `"ENCF inválido"`, "", fiscal.ErrUnavailable},
		{"empty list with 400", 400, `[]`, "", fiscal.ErrUnavailable},
		{"track id with 400", 400, `[{"trackId":"a","estado":"Aceptado"}]`, "", fiscal.ErrUnavailable},
		{"about another document", 200, `[{"trackId":"a","estado":"Aceptado","encf":"E310000000059"}]`, "", fiscal.ErrUnavailable},
		{"down", 503, `[]`, "", fiscal.ErrUnavailable},
		{"404 with nothing", 404, ``, "", fiscal.ErrUnavailable},
		{"404 with an empty list", 404, `[]`, "", fiscal.ErrUnavailable},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newEnv(t, answer(tt.status, tt.body))
			list, err := s.client(t).TrackIDs(testContext(t), signer(t), query())
			wantError(t, err, tt.err)
			if err != nil {
				return
			}
			names := []string{}
			for _, a := range list {
				name := a.TrackID
				if a.Known {
					name += fmt.Sprintf("=%d", a.Verdict)
				}
				names = append(names, name)
			}
			if got := fmt.Sprint(names); got != tt.want || list == nil {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

package dgii

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

func ours() fiscal.Query {
	return fiscal.Query{RNC: "131256432", ENCF: "E310000000058", BuyerRNC: "101010101", SecurityCode: "a+/=1&"}
}

func TestP88LookUps(t *testing.T) {
	t.Parallel()
	known := func(v fiscal.Verdict, messages ...fiscal.Message) fiscal.Answer {
		return fiscal.Answer{Known: true, Verdict: v, Messages: messages}
	}
	table := []submission{
		{"accepted as served", 200, `{"trackId":"t-1","codigo":"1","estado":"Aceptado","rnc":"131256432","encf":"E310000000058","secuenciaUtilizada":true,"fechaRecepcion":"10/8/2026 11:22:49 AM","mensajes":[{"valor":"","codigo":0}]}`,
			fiscal.Answer{Known: true, Verdict: fiscal.VerdictAccepted, TrackID: "t-1", SequenceUsed: true, SequenceStated: true}, nil},
		{"conditional as documented", 200, `{"codigo":4,"estado":"Aceptado condicional","eNCF":"E310000000058","mensajes":[{"valor":"x","codigo":1385}]}`,
			known(fiscal.VerdictConditional, fiscal.Message{Code: "1385", Text: "x"}), nil},
		{"rejected", 200, `{"codigo":2,"estado":"Rechazado","mensajes":[{"codigo":64}]}`, known(fiscal.VerdictRejected, fiscal.Message{Code: "64"}), nil},
		{"in process", 200, `{"codigo":"3","estado":"En  proceso"}`, known(fiscal.VerdictInProcess), nil},
		{"not found", 200, `{"codigo":0,"estado":"No encontrado"}`, known(fiscal.VerdictNotFound), nil},
		{"not found with 404", 404, `{"codigo":0,"estado":"No Encontrado."}`, known(fiscal.VerdictNotFound), nil},
		{"state alone", 200, `{"estado":"Aceptado"}`, known(fiscal.VerdictAccepted), nil},
		{"code alone", 200, `{"codigo":1}`, known(fiscal.VerdictAccepted), nil},

		{"record that nobody filled in", 200, `{"codigo":0,"estado":null,"rnc":null}`, fiscal.Answer{}, fiscal.ErrUnavailable},
		{"contradiction", 200, `{"codigo":1,"estado":"Rechazado"}`, fiscal.Answer{}, fiscal.ErrUnavailable},
		{"unknown code", 200, `{"codigo":7,"estado":"Aceptado"}`, fiscal.Answer{}, fiscal.ErrUnavailable},
		{"code that is no number", 200, `{"codigo":1.5}`, fiscal.Answer{}, fiscal.ErrUnavailable},
		{"unknown state", 200, `{"codigo":1,"estado":"Quizás"}`, fiscal.Answer{}, fiscal.ErrUnavailable},
		{"accepted with 400", 400, `{"codigo":1,"estado":"Aceptado"}`, fiscal.Answer{}, fiscal.ErrUnavailable},
		{"empty object", 200, `{}`, fiscal.Answer{}, fiscal.ErrUnavailable},
		{"null", 200, `null`, fiscal.Answer{}, fiscal.ErrUnavailable},
		{"nothing", 200, ``, fiscal.Answer{}, fiscal.ErrUnavailable},
		{"page", 200, page, fiscal.Answer{}, fiscal.ErrUnavailable},
		{"sentence", 400, `"El RNC del token no está autorizado"`, fiscal.Answer{}, fiscal.ErrUnavailable},
		{"500", 500, `{"codigo":1,"estado":"Aceptado"}`, fiscal.Answer{}, fiscal.ErrUnavailable},
		{"redirect", 302, ``, fiscal.Answer{}, fiscal.ErrUnavailable},
		{"401 for good", 401, ``, fiscal.Answer{}, fiscal.ErrUnavailable},
		{"429", 429, ``, fiscal.Answer{}, fiscal.ErrUnavailable},
		{"5 MB", 200, `{"codigo":1,"x":"` + strings.Repeat("x", 5<<20) + `"}`, fiscal.Answer{}, fiscal.ErrUnavailable},
		{"absent", 404, ``, fiscal.Answer{}, fiscal.ErrAbsent},
		{"absent with a page", 404, page, fiscal.Answer{}, fiscal.ErrAbsent},
		{"absent with a problem object", 404, `{"type":"x","title":"Not Found","status":404}`, fiscal.Answer{}, fiscal.ErrAbsent},
	}
	for _, tt := range table {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, say(tt.status, tt.body))
			for name, ask := range map[string]func(*Client) (fiscal.Answer, error){
				"result":  func(c *Client) (fiscal.Answer, error) { return c.Result(soon(t), signer(t), "T-1") },
				"state":   func(c *Client) (fiscal.Answer, error) { return c.State(soon(t), signer(t), ours()) },
				"summary": func(c *Client) (fiscal.Answer, error) { return c.SummaryState(soon(t), signer(t), ours()) },
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

// An answer about another document is none.
func TestAnswerOfAnother(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	c := s.client(t)
	for _, who := range []string{`"rncEmisor":"131256433"`, `"ncfElectronico":"E310000000059"`, `"encf":"E310000000059"`, `"rnc":"1"`} {
		s.script(say(200, `{"codigo":1,"estado":"Aceptado",`+who+`}`))
		_, err := c.State(soon(t), signer(t), ours())
		wantError(t, err, fiscal.ErrUnavailable)
		_, err = c.SummaryState(soon(t), signer(t), ours())
		wantError(t, err, fiscal.ErrUnavailable)
	}
	s.script(say(200, `{"codigo":1,"estado":"Aceptado","trackId":"other"}`))
	_, err := c.Result(soon(t), signer(t), "t-1")
	wantError(t, err, fiscal.ErrUnavailable)
}

// What a look-up by number shows proves whose document it is.
func TestStateProof(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		if q.Get("rncemisor") != "131256432" || q.Get("ncfelectronico") != "E310000000058" || q.Get("rnccomprador") != "101010101" || q.Get("codigoseguridad") != "a+/=1&" {
			t.Errorf("asked %s", r.URL)
		}
		say(200, `{"codigo":1,"estado":"Aceptado","rncEmisor":"131256432","ncfElectronico":"E310000000058","montoTotal":1180.50,"totalITBIS":180.5,"fechaEmision":"05-10-2026","fechaFirma":"x","rncComprador":"101010101","codigoSeguridad":"a+/=1&","idExtranjero":null}`)(w, r)
	})
	got, err := s.client(t).State(soon(t), signer(t), ours())
	if err != nil {
		t.Fatal(err)
	}
	if !got.HasTotal || got.Total.StringFixed(2) != "1180.50" || got.SecurityCode != "a+/=1&" || got.IssueDate.String() != "2026-10-05" {
		t.Errorf("%+v", got)
	}
	for text, want := range map[string]string{"2026-10-05T00:00:00": "2026-10-05", "10/5/2026": fiscal.Date{}.String(), "": fiscal.Date{}.String()} {
		if got := dateOf(text).String(); got != want {
			t.Errorf("%q is %s, want %s", text, got, want)
		}
	}
}

func TestTrackIDs(t *testing.T) {
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
		{"none in words", 200, `[{"trackId":null,"estado":"No encontrado","fechaRecepcion":null}]`, "[]", nil},
		{"none with 404", 404, `{"trackId":null,"estado":"TrackId no encontrado."}`, "[]", nil},
		{"none with 400", 400, `{"estado":"TrackId no encontrado."}`, "[]", nil},
		{"entry without anything", 200, `[{"trackId":null,"estado":null}]`, "", fiscal.ErrUnavailable},
		{"empty object", 200, `{}`, "", fiscal.ErrUnavailable},
		{"null", 200, `null`, "", fiscal.ErrUnavailable},
		{"nothing", 200, ``, "", fiscal.ErrUnavailable},
		{"page", 200, page, "", fiscal.ErrUnavailable},
		{"refused", 400, `{"mensaje":"RNC requerido"}`, "", fiscal.ErrUnavailable},
		{"sentence", 400, `"ENCF inválido"`, "", fiscal.ErrUnavailable},
		{"empty list with 400", 400, `[]`, "", fiscal.ErrUnavailable},
		{"track id with 400", 400, `[{"trackId":"a","estado":"Aceptado"}]`, "", fiscal.ErrUnavailable},
		{"of another", 200, `[{"trackId":"a","estado":"Aceptado","encf":"E310000000059"}]`, "", fiscal.ErrUnavailable},
		{"down", 503, `[]`, "", fiscal.ErrUnavailable},
		{"absent", 404, ``, "", fiscal.ErrAbsent},
		{"absent with an empty list", 404, `[]`, "", fiscal.ErrAbsent},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, say(tt.status, tt.body))
			list, err := s.client(t).TrackIDs(soon(t), signer(t), ours())
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

func TestReceiver(t *testing.T) {
	t.Parallel()
	const entry = `{"nombre":"X","rnc":"101010101","urlRecepcion":"https://a.example.com/","urlAceptacion":"https://b.example.com","urlOpcional":"https://c.example.com"}`
	full := fiscal.Receiver{RNC: "101010101", Reception: "https://a.example.com", Approval: "https://b.example.com", Authentication: "https://c.example.com"}
	for _, tt := range []struct {
		name   string
		status int
		body   string
		want   fiscal.Receiver
		listed bool
		err    error
	}{
		{"object", 200, entry, full, true, nil},
		{"list", 200, `[` + entry + `]`, full, true, nil},
		{"list with others", 200, `[{"rnc":"1","urlRecepcion":"https://x.example.com"},` + entry + `]`, full, true, nil},
		{"other names", 200, `{"RNC":101010101,"URLRecepcion":"https://a.example.com","urlAprobacionComercial":"https://b.example.com","urlAutenticacion":"https://c.example.com"}`, full, true, nil},
		{"without authentication", 200, `{"rnc":"1-01-01010-1","urlRecepcion":"https://a.example.com","urlOpcional":null}`, fiscal.Receiver{RNC: "101010101", Reception: "https://a.example.com"}, true, nil},
		{"null", 200, `null`, fiscal.Receiver{}, false, nil},
		{"nothing", 200, ``, fiscal.Receiver{}, false, nil},
		{"no content", 204, ``, fiscal.Receiver{}, false, nil},
		{"empty list", 200, `[]`, fiscal.Receiver{}, false, nil},
		{"list of null", 200, `[null]`, fiscal.Receiver{}, false, nil},
		{"record that nobody filled in", 200, `{"nombre":null,"rnc":null,"urlRecepcion":null}`, fiscal.Receiver{}, false, nil},
		{"not found in words", 404, `{"mensaje":"RNC no encontrado"}`, fiscal.Receiver{}, false, nil},
		{"empty object", 200, `{}`, fiscal.Receiver{}, false, fiscal.ErrUnavailable},
		{"another taxpayer", 200, `{"rnc":"101010102","urlRecepcion":"https://a.example.com"}`, fiscal.Receiver{}, false, fiscal.ErrUnavailable},
		{"page", 200, page, fiscal.Receiver{}, false, fiscal.ErrUnavailable},
		{"down", 503, ``, fiscal.Receiver{}, false, fiscal.ErrUnavailable},
		{"absent", 404, ``, fiscal.Receiver{}, false, fiscal.ErrAbsent},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, say(tt.status, tt.body))
			got, listed, err := s.client(t).Receiver(soon(t), signer(t), "101010101")
			wantError(t, err, tt.err)
			if listed != tt.listed || got != tt.want {
				t.Errorf("got %+v, %v", got, listed)
			}
		})
	}
	t.Run("the emulator authenticates at its own address", func(t *testing.T) {
		t.Parallel()
		s := serve(t, say(200, `[{"nombre":"DGII","rnc":"131880681","urlRecepcion":"https://ecf.dgii.gov.do/testecf/emisorreceptor","urlOpcional":"https://ecf.dgii.gov.do/Testecf/autenticacion"}]`))
		got, _, err := s.client(t).Receiver(soon(t), signer(t), emulatorRNC)
		if err != nil || got.Authentication != got.Reception {
			t.Errorf("%+v, %v", got, err)
		}
	})
}

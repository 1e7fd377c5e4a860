package dgii

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

type submission struct {
	name    string
	status  int
	body    string
	want    fiscal.AuthorityAnswer // when the response is conclusive
	wantErr error
}

func rejected(messages ...fiscal.Message) fiscal.AuthorityAnswer {
	return fiscal.AuthorityAnswer{Known: true, Verdict: fiscal.VerdictRejected, Messages: messages}
}

// refusals are the responses that mean the same for e-CFs and summaries.
var refusals = []submission{
	{"reason as documented", 400, `{"trackId":null,"error":"Archivo inválido","mensaje":"Archivo inválido"}`,
		rejected(fiscal.Message{Text: "Archivo inválido"}), nil},
	{"messages as objects", 400, `{"mensajes":[{"codigo":176,"valor":"El campo IndicadorMontoGravado no es válido."}]}`,
		rejected(fiscal.Message{Code: "176", Text: "El campo IndicadorMontoGravado no es válido."}), nil},
	{"messages as strings", 400, `{"mensajes":["uno","dos"]}`, rejected(fiscal.Message{Text: "uno"}, fiscal.Message{Text: "dos"}), nil},
	{"message with a code alone", 400, `{"mensajes":[{"codigo":"64","valor":""}]}`, rejected(fiscal.Message{Code: "64"}), nil},
	{"code beside the text", 422, `{"codigo":176,"mensaje":"no"}`, rejected(fiscal.Message{Code: "176", Text: "no"}), nil},
	{"error alone", 400, `{"error":"No autorizado para este tipo"}`, rejected(fiscal.Message{Text: "No autorizado para este tipo"}), nil},
	{"names in other letters, text/plain, byte order mark", 400, "\ufeff {\"MENSAJES\":[{\"Codigo\":1,\"Valor\":\"x\"}]}", rejected(fiscal.Message{Code: "1", Text: "x"}), nil},

	{"not delegated in an object", 400, `{"mensaje":"El RNC no está DELEGADO"}`, fiscal.AuthorityAnswer{}, fiscal.ErrNotDelegated},
	{"not delegated as a JSON string", 400, `"El RNC no está delegado"`, fiscal.AuthorityAnswer{}, fiscal.ErrNotDelegated},
	{"not delegated as a sentence", 403, `El RNC no está delegado`, fiscal.AuthorityAnswer{}, fiscal.ErrNotDelegated},
	{"not delegated as a verdict with 200", 200, `{"codigo":2,"estado":"Rechazado","mensajes":[{"codigo":1,"valor":"El RNC no está delegado"}]}`, fiscal.AuthorityAnswer{}, fiscal.ErrNotDelegated},

	{"page", 400, htmlPage, fiscal.AuthorityAnswer{}, fiscal.ErrInconclusive},
	{"page with 200", 200, htmlPage, fiscal.AuthorityAnswer{}, fiscal.ErrInconclusive},
	{"nothing", 400, "", fiscal.AuthorityAnswer{}, fiscal.ErrInconclusive},
	{"nothing with 200", 200, "", fiscal.AuthorityAnswer{}, fiscal.ErrInconclusive},
	{"null", 200, "null", fiscal.AuthorityAnswer{}, fiscal.ErrInconclusive},
	{"string", 400, `"El multipart no puede estar vacío"`, fiscal.AuthorityAnswer{}, fiscal.ErrInconclusive},
	{"sentence", 400, `Bad Request`, fiscal.AuthorityAnswer{}, fiscal.ErrInconclusive},
	{"problem object", 400, `{"type":"https://tools.ietf.org/html/rfc7231","title":"One or more validation errors occurred.","status":400,"errors":{"xml":["required"]}}`, fiscal.AuthorityAnswer{}, fiscal.ErrInconclusive},
	{"framework's error object", 400, `{"timestamp":1,"status":400,"error":"Bad Request","path":"/x"}`, fiscal.AuthorityAnswer{}, fiscal.ErrInconclusive},
	{"404 of a gateway", 404, `{"error":"not found"}`, fiscal.AuthorityAnswer{}, fiscal.ErrInconclusive},
	{"time-out of a proxy", 408, `{"mensaje":"timeout"}`, fiscal.AuthorityAnswer{}, fiscal.ErrInconclusive},
	{"message in English", 400, `{"message":"no"}`, fiscal.AuthorityAnswer{}, fiscal.ErrInconclusive},
	{"empty reason", 400, `{"mensajes":[{"codigo":0,"valor":""}]}`, fiscal.AuthorityAnswer{}, fiscal.ErrInconclusive},
	{"empty object", 200, `{}`, fiscal.AuthorityAnswer{}, fiscal.ErrInconclusive},
	{"list", 200, `[]`, fiscal.AuthorityAnswer{}, fiscal.ErrInconclusive},
	{"truncated", 200, `{"trackId":"98b0`, fiscal.AuthorityAnswer{}, fiscal.ErrInconclusive},
	{"not a number", 200, `{"trackId":NaN}`, fiscal.AuthorityAnswer{}, fiscal.ErrInconclusive},
	{"two values for one name", 200, `{"trackId":"a","TRACKID":"b","codigo":1,"Codigo":2}`, fiscal.AuthorityAnswer{}, fiscal.ErrInconclusive},
	{"500", 500, `{"mensajes":["x"]}`, fiscal.AuthorityAnswer{}, fiscal.ErrInconclusive},
	{"503 with a track id", 503, `{"trackId":"x"}`, fiscal.AuthorityAnswer{}, fiscal.ErrInconclusive},
	{"redirect", 307, ``, fiscal.AuthorityAnswer{}, fiscal.ErrInconclusive},
	{"5 MB", 200, `{"trackId":"x","mensaje":"` + strings.Repeat("x", 5<<20) + `"}`, fiscal.AuthorityAnswer{}, fiscal.ErrInconclusive},
	{"about another number", 400, `{"codigo":2,"estado":"Rechazado","encf":"E310000000059"}`, fiscal.AuthorityAnswer{}, fiscal.ErrInconclusive},
	{"accepted and refused", 400, `{"codigo":1,"estado":"Aceptado"}`, fiscal.AuthorityAnswer{}, fiscal.ErrInconclusive},
	{"code contradicts state", 400, `{"codigo":2,"estado":"Aceptado"}`, fiscal.AuthorityAnswer{}, fiscal.ErrInconclusive},
}

func checkSubmissions(t *testing.T, table []submission, submit func(*Client) (fiscal.AuthorityAnswer, error)) {
	for _, tt := range table {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var posts int
			s := newEnv(t, func(w http.ResponseWriter, r *http.Request) {
				posts++
				w.Header().Set("Location", "/elsewhere")
				answer(tt.status, tt.body)(w, r)
			})
			c := s.client(t)
			got, err := submit(c)
			wantError(t, err, tt.wantErr)
			if posts != 1 {
				t.Errorf("%d posts, want 1", posts)
			}
			if len(got.Raw) > maxRaw || tt.body != "" && len(got.Raw) == 0 {
				t.Errorf("%d bytes kept", len(got.Raw))
			}
			if err != nil {
				if got.Known {
					t.Errorf("an error together with the verdict %v", got)
				}
				return
			}
			if got.At.IsZero() {
				t.Error("the answer has no time")
			}
			got.Raw, got.At, got.RNC, got.ENCF = nil, tt.want.At, "", ""
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestSubmitReadsEveryResponse(t *testing.T) {
	t.Parallel()
	const track = "98b094eb-7a9f-4e47-95f9-435d9e357426"
	table := append([]submission{
		{"track id", 200, `{"trackId":"` + track + `","error":null,"mensaje":null}`, fiscal.AuthorityAnswer{TrackID: track}, nil},
		{"track id and empty error", 200, `{"TrackID":"` + track + `","error":"","mensaje":[]}`, fiscal.AuthorityAnswer{TrackID: track}, nil},
		{"empty track id", 200, `{"trackId":"","error":null,"mensaje":null}`, fiscal.AuthorityAnswer{}, fiscal.ErrInconclusive},
		{"track id and error", 200, `{"trackId":"` + track + `","error":"x"}`, fiscal.AuthorityAnswer{}, fiscal.ErrInconclusive},
		{"error with 200", 200, `{"trackId":null,"error":"no","mensaje":"no"}`, rejected(fiscal.Message{Text: "no"}), nil},
		{"refused track id", 400, `{"trackId":"` + track + `","mensaje":"no"}`, fiscal.AuthorityAnswer{}, fiscal.ErrInconclusive},
		{"full verdict", 400, `{"codigo":2,"estado":"Rechazado","encf":"E310000000058","secuenciaUtilizada":false,"mensajes":[{"codigo":"135","valor":"x"}]}`,
			fiscal.AuthorityAnswer{Known: true, Verdict: fiscal.VerdictRejected, NumberStated: true, Messages: []fiscal.Message{{Code: "135", Text: "x"}}}, nil},
		{"acceptance without a track id", 200, `{"codigo":1,"estado":"Aceptado"}`, fiscal.AuthorityAnswer{}, fiscal.ErrInconclusive},
	}, refusals...)
	checkSubmissions(t, table, func(c *Client) (fiscal.AuthorityAnswer, error) {
		return c.Submit(testContext(t), signer(t), shipment())
	})
}

func TestSubmitSummaryReadsEveryResponse(t *testing.T) {
	t.Parallel()
	accepted := fiscal.AuthorityAnswer{Known: true, Verdict: fiscal.VerdictAccepted, NumberUsed: true, NumberStated: true}
	table := append([]submission{
		{"accepted", 200, `{"codigo":1,"estado":"Aceptado","mensajes":null,"encf":"E310000000058","secuenciaUtilizada":true}`, accepted, nil},
		{"code as a string", 200, `{"codigo":"1","estado":"ACEPTADO ","mensajes":[{"valor":"","codigo":0}],"secuenciaUtilizada":"true"}`, accepted, nil},
		{"conditional", 200, `{"codigo":4,"estado":"Aceptado Condicional","mensajes":[{"codigo":"75","valor":"x"}]}`,
			fiscal.AuthorityAnswer{Known: true, Verdict: fiscal.VerdictConditional, Messages: []fiscal.Message{{Code: "75", Text: "x"}}}, nil},
		{"rejected", 400, `{"codigo":2,"estado":"Rechazado","mensajes":[{"codigo":"75","valor":"x"}],"encf":"E310000000058","secuenciaUtilizada":true}`,
			fiscal.AuthorityAnswer{Known: true, Verdict: fiscal.VerdictRejected, NumberUsed: true, NumberStated: true, Messages: []fiscal.Message{{Code: "75", Text: "x"}}}, nil},
		{"in process", 200, `{"codigo":3,"estado":"En Proceso"}`, fiscal.AuthorityAnswer{}, fiscal.ErrInconclusive},
		{"unknown code", 200, `{"codigo":7,"estado":"Otro"}`, fiscal.AuthorityAnswer{}, fiscal.ErrInconclusive},
		{"empty record", 200, `{"codigo":0,"estado":null}`, fiscal.AuthorityAnswer{}, fiscal.ErrInconclusive},
		{"about another issuer", 200, `{"codigo":1,"estado":"Aceptado","rnc":"101010101"}`, fiscal.AuthorityAnswer{}, fiscal.ErrInconclusive},
	}, refusals...)
	checkSubmissions(t, table, func(c *Client) (fiscal.AuthorityAnswer, error) {
		return c.SubmitSummary(testContext(t), signer(t), shipment())
	})
}

package dgii

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

const page = "<!DOCTYPE html><html><body>El servicio no está delegado</body></html>"

// sentinels are told apart by every caller; an error wraps exactly one.
var sentinels = []error{
	fiscal.ErrNotReceived, fiscal.ErrInconclusive, fiscal.ErrAbsent, fiscal.ErrNotDelegated, fiscal.ErrUnavailable,
}

func wantError(t *testing.T, err, want error) {
	t.Helper()
	for _, s := range sentinels {
		if got := errors.Is(err, s); got != errors.Is(want, s) {
			t.Fatalf("error %v: is %q = %v", err, s, got)
		}
	}
	if err != nil && (strings.Contains(err.Error(), "secret-token") || strings.Contains(err.Error(), seedValue)) {
		t.Fatalf("the error tells a secret: %v", err)
	}
}

type submission struct {
	name    string
	status  int
	body    string
	want    fiscal.Answer // what is conclusive
	wantErr error
}

func rejected(messages ...fiscal.Message) fiscal.Answer {
	return fiscal.Answer{Known: true, Verdict: fiscal.VerdictRejected, Messages: messages}
}

// refusals at the door, which both receptions have.
var refusedAtTheDoor = []submission{
	{"reason as the authority documents it", 400, `{"trackId":null,"error":"Archivo inválido","mensaje":"Archivo inválido"}`,
		rejected(fiscal.Message{Text: "Archivo inválido"}), nil},
	{"messages as objects", 400, `{"mensajes":[{"codigo":176,"valor":"El campo IndicadorMontoGravado no es válido."}]}`,
		rejected(fiscal.Message{Code: "176", Text: "El campo IndicadorMontoGravado no es válido."}), nil},
	{"messages as strings", 400, `{"mensajes":["uno","dos"]}`, rejected(fiscal.Message{Text: "uno"}, fiscal.Message{Text: "dos"}), nil},
	{"message with a code alone", 400, `{"mensajes":[{"codigo":"64","valor":""}]}`, rejected(fiscal.Message{Code: "64"}), nil},
	{"code beside the text", 422, `{"codigo":176,"mensaje":"no"}`, rejected(fiscal.Message{Code: "176", Text: "no"}), nil},
	{"error alone", 400, `{"error":"No autorizado para este tipo"}`, rejected(fiscal.Message{Text: "No autorizado para este tipo"}), nil},
	{"names in other letters, text/plain, byte order mark", 400, "\ufeff {\"MENSAJES\":[{\"Codigo\":1,\"Valor\":\"x\"}]}", rejected(fiscal.Message{Code: "1", Text: "x"}), nil},

	{"not delegated in an object", 400, `{"mensaje":"El RNC no está DELEGADO"}`, fiscal.Answer{}, fiscal.ErrNotDelegated},
	{"not delegated as a JSON string", 400, `"El RNC no está delegado"`, fiscal.Answer{}, fiscal.ErrNotDelegated},
	{"not delegated as a sentence", 403, `El RNC no está delegado`, fiscal.Answer{}, fiscal.ErrNotDelegated},

	{"page", 400, page, fiscal.Answer{}, fiscal.ErrInconclusive},
	{"page with 200", 200, page, fiscal.Answer{}, fiscal.ErrInconclusive},
	{"nothing", 400, "", fiscal.Answer{}, fiscal.ErrInconclusive},
	{"nothing with 200", 200, "", fiscal.Answer{}, fiscal.ErrInconclusive},
	{"null", 200, "null", fiscal.Answer{}, fiscal.ErrInconclusive},
	{"string", 400, `"El multipart no puede estar vacío"`, fiscal.Answer{}, fiscal.ErrInconclusive},
	{"sentence", 400, `Bad Request`, fiscal.Answer{}, fiscal.ErrInconclusive},
	{"problem object", 400, `{"type":"https://tools.ietf.org/html/rfc7231","title":"One or more validation errors occurred.","status":400,"errors":{"xml":["required"]}}`, fiscal.Answer{}, fiscal.ErrInconclusive},
	{"framework's error object", 400, `{"timestamp":1,"status":400,"error":"Bad Request","path":"/x"}`, fiscal.Answer{}, fiscal.ErrInconclusive},
	{"error of a gateway that knows no such path", 404, `{"error":"not found"}`, fiscal.Answer{}, fiscal.ErrInconclusive},
	{"time-out of a proxy", 408, `{"mensaje":"timeout"}`, fiscal.Answer{}, fiscal.ErrInconclusive},
	{"message in English", 400, `{"message":"no"}`, fiscal.Answer{}, fiscal.ErrInconclusive},
	{"empty reason", 400, `{"mensajes":[{"codigo":0,"valor":""}]}`, fiscal.Answer{}, fiscal.ErrInconclusive},
	{"empty object", 200, `{}`, fiscal.Answer{}, fiscal.ErrInconclusive},
	{"list", 200, `[]`, fiscal.Answer{}, fiscal.ErrInconclusive},
	{"truncated", 200, `{"trackId":"98b0`, fiscal.Answer{}, fiscal.ErrInconclusive},
	{"not a number", 200, `{"trackId":NaN}`, fiscal.Answer{}, fiscal.ErrInconclusive},
	{"two values for one name", 200, `{"trackId":"a","TRACKID":"b","codigo":1,"Codigo":2}`, fiscal.Answer{}, fiscal.ErrInconclusive},
	{"500", 500, `{"mensajes":["x"]}`, fiscal.Answer{}, fiscal.ErrInconclusive},
	{"503 with a track id", 503, `{"trackId":"x"}`, fiscal.Answer{}, fiscal.ErrInconclusive},
	{"redirect", 307, ``, fiscal.Answer{}, fiscal.ErrInconclusive},
	{"5 MB", 200, `{"trackId":"x","mensaje":"` + strings.Repeat("x", 5<<20) + `"}`, fiscal.Answer{}, fiscal.ErrInconclusive},
	{"for another number", 400, `{"codigo":2,"estado":"Rechazado","encf":"E310000000059"}`, fiscal.Answer{}, fiscal.ErrInconclusive},
	{"accepted and refused", 400, `{"codigo":1,"estado":"Aceptado"}`, fiscal.Answer{}, fiscal.ErrInconclusive},
	{"code contradicts state", 400, `{"codigo":2,"estado":"Aceptado"}`, fiscal.Answer{}, fiscal.ErrInconclusive},
}

func checkSubmissions(t *testing.T, table []submission, submit func(*Client) (fiscal.Answer, error)) {
	for _, tt := range table {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var posts int
			s := serve(t, func(w http.ResponseWriter, r *http.Request) {
				posts++
				w.Header().Set("Location", "/elsewhere")
				say(tt.status, tt.body)(w, r)
			})
			c := s.client(t)
			got, err := submit(c)
			wantError(t, err, tt.wantErr)
			if posts != 1 {
				t.Errorf("%d posts, want 1", posts)
			}
			if len(got.Raw) > rawLimit || tt.body != "" && len(got.Raw) == 0 {
				t.Errorf("%d bytes kept", len(got.Raw))
			}
			if err != nil {
				if got.Known {
					t.Errorf("an error beside the verdict %v", got)
				}
				return
			}
			if got.At.IsZero() {
				t.Error("no instant")
			}
			got.Raw, got.At, got.RNC, got.ENCF = nil, tt.want.At, "", ""
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestP88Submit(t *testing.T) {
	t.Parallel()
	const track = "98b094eb-7a9f-4e47-95f9-435d9e357426"
	table := append([]submission{
		{"track id", 200, `{"trackId":"` + track + `","error":null,"mensaje":null}`, fiscal.Answer{TrackID: track}, nil},
		{"track id and empty error", 200, `{"TrackID":"` + track + `","error":"","mensaje":[]}`, fiscal.Answer{TrackID: track}, nil},
		{"empty track id", 200, `{"trackId":"","error":null,"mensaje":null}`, fiscal.Answer{}, fiscal.ErrInconclusive},
		{"track id and error", 200, `{"trackId":"` + track + `","error":"x"}`, fiscal.Answer{}, fiscal.ErrInconclusive},
		{"error with 200", 200, `{"trackId":null,"error":"no","mensaje":"no"}`, rejected(fiscal.Message{Text: "no"}), nil},
		{"refused track id", 400, `{"trackId":"` + track + `","mensaje":"no"}`, fiscal.Answer{}, fiscal.ErrInconclusive},
		{"full verdict", 400, `{"codigo":2,"estado":"Rechazado","encf":"E310000000058","secuenciaUtilizada":false,"mensajes":[{"codigo":"135","valor":"x"}]}`,
			fiscal.Answer{Known: true, Verdict: fiscal.VerdictRejected, SequenceStated: true, Messages: []fiscal.Message{{Code: "135", Text: "x"}}}, nil},
		{"acceptance without a track id", 200, `{"codigo":1,"estado":"Aceptado"}`, fiscal.Answer{}, fiscal.ErrInconclusive},
	}, refusedAtTheDoor...)
	checkSubmissions(t, table, func(c *Client) (fiscal.Answer, error) {
		return c.Submit(soon(t), signer(t), shipment())
	})
}

func TestP88SubmitSummary(t *testing.T) {
	t.Parallel()
	accepted := fiscal.Answer{Known: true, Verdict: fiscal.VerdictAccepted, SequenceUsed: true, SequenceStated: true}
	table := append([]submission{
		{"accepted", 200, `{"codigo":1,"estado":"Aceptado","mensajes":null,"encf":"E310000000058","secuenciaUtilizada":true}`, accepted, nil},
		{"code as a string", 200, `{"codigo":"1","estado":"ACEPTADO ","mensajes":[{"valor":"","codigo":0}],"secuenciaUtilizada":"true"}`, accepted, nil},
		{"conditional", 200, `{"codigo":4,"estado":"Aceptado Condicional","mensajes":[{"codigo":"75","valor":"x"}]}`,
			fiscal.Answer{Known: true, Verdict: fiscal.VerdictConditional, Messages: []fiscal.Message{{Code: "75", Text: "x"}}}, nil},
		{"rejected", 400, `{"codigo":2,"estado":"Rechazado","mensajes":[{"codigo":"75","valor":"x"}],"encf":"E310000000058","secuenciaUtilizada":true}`,
			fiscal.Answer{Known: true, Verdict: fiscal.VerdictRejected, SequenceUsed: true, SequenceStated: true, Messages: []fiscal.Message{{Code: "75", Text: "x"}}}, nil},
		{"in process", 200, `{"codigo":3,"estado":"En Proceso"}`, fiscal.Answer{}, fiscal.ErrInconclusive},
		{"unknown code", 200, `{"codigo":7,"estado":"Otro"}`, fiscal.Answer{}, fiscal.ErrInconclusive},
		{"record that nobody filled in", 200, `{"codigo":0,"estado":null}`, fiscal.Answer{}, fiscal.ErrInconclusive},
		{"of another issuer", 200, `{"codigo":1,"estado":"Aceptado","rnc":"101010101"}`, fiscal.Answer{}, fiscal.ErrInconclusive},
	}, refusedAtTheDoor...)
	checkSubmissions(t, table, func(c *Client) (fiscal.Answer, error) {
		return c.SubmitSummary(soon(t), signer(t), shipment())
	})
}

// The authority takes an upload only with a length, one part and the right name.
func TestUploadForm(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength <= 0 || len(r.TransferEncoding) > 0 || r.Proto != "HTTP/1.1" {
			t.Errorf("length %d, encoding %v, %s", r.ContentLength, r.TransferEncoding, r.Proto)
		}
		for _, name := range []string{"Expect", "Idempotency-Key", "X-Idempotency-Key"} {
			if r.Header.Get(name) != "" {
				t.Errorf("header %s", name)
			}
		}
		if got := r.Header.Get("Accept"); got != "application/json" {
			t.Errorf("Accept %q", got)
		}
		if want := "/ecf-host/testecf/recepcion/api/facturaselectronicas"; r.URL.Path != want {
			t.Errorf("path %s, want %s", r.URL.Path, want)
		}
		parts, err := r.MultipartReader()
		if err != nil {
			t.Error(err)
			return
		}
		part, err := parts.NextPart()
		if err != nil {
			t.Error(err)
			return
		}
		body, _ := io.ReadAll(part)
		if part.FormName() != "xml" || part.FileName() != "131256432E310000000058.xml" || part.Header.Get("Content-Type") != "text/xml" {
			t.Errorf("part %v", part.Header)
		}
		if string(body) != string(shipment().XML) {
			t.Errorf("document %q", body)
		}
		if _, err := parts.NextPart(); !errors.Is(err, io.EOF) {
			t.Errorf("a second part: %v", err)
		}
		_, _ = io.WriteString(w, `{"trackId":"t"}`)
	})
	if _, err := s.client(t).Submit(soon(t), signer(t), shipment()); err != nil {
		t.Fatal(err)
	}
	bad := shipment()
	bad.RNC = `1"; x="`
	_, err := s.client(t).Submit(soon(t), signer(t), bad)
	wantError(t, err, fiscal.ErrNotReceived)
}

// Every list of messages ends up short, readable and storable.
func TestMessages(t *testing.T) {
	t.Parallel()
	long := `{"codigo":1,"valor":"` + strings.Repeat("ñ", 10_000) + `\u0000"},`
	body := `{"codigo":2,"estado":"Rechazado","mensajes":[` + strings.TrimSuffix(strings.Repeat(long+`"otro",`, 100), ",") + `]}`
	s := serve(t, say(400, body))
	got, err := s.client(t).SubmitSummary(soon(t), signer(t), shipment())
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Messages) != listLimit || len(got.Raw) != rawLimit {
		t.Errorf("%d messages, %d bytes", len(got.Messages), len(got.Raw))
	}
	if want := strings.Repeat("ñ", textLimit); got.Messages[0].Text != want {
		t.Errorf("text of %d bytes", len(got.Messages[0].Text))
	}
}

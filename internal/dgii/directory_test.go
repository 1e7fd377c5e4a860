package dgii

import (
	"testing"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

func TestReceiverReadsTheDirectory(t *testing.T) {
	t.Parallel()
	const entry = `{"nombre":"X","rnc":"101010101","urlRecepcion":"https://a.example.com/","urlAceptacion":"https://b.example.com","urlOpcional":"https://c.example.com"}`
	full := fiscal.BuyerEndpoint{RNC: "101010101", Reception: "https://a.example.com", Approval: "https://b.example.com", Authentication: "https://c.example.com"}
	for _, tt := range []struct {
		name   string
		status int
		body   string
		want   fiscal.BuyerEndpoint
		listed bool
		err    error
	}{
		{"object", 200, entry, full, true, nil},
		{"list", 200, `[` + entry + `]`, full, true, nil},
		{"list with others", 200, `[{"rnc":"1","urlRecepcion":"https://x.example.com"},` + entry + `]`, full, true, nil},
		{"other names", 200, `{"RNC":101010101,"URLRecepcion":"https://a.example.com","urlAprobacionComercial":"https://b.example.com","urlAutenticacion":"https://c.example.com"}`, full, true, nil},
		{"without authentication", 200, `{"rnc":"1-01-01010-1","urlRecepcion":"https://a.example.com","urlOpcional":null}`, fiscal.BuyerEndpoint{RNC: "101010101", Reception: "https://a.example.com"}, true, nil},
		{"null", 200, `null`, fiscal.BuyerEndpoint{}, false, nil},
		{"nothing", 200, ``, fiscal.BuyerEndpoint{}, false, nil},
		{"no content", 204, ``, fiscal.BuyerEndpoint{}, false, nil},
		{"empty list", 200, `[]`, fiscal.BuyerEndpoint{}, false, nil},
		{"list of null", 200, `[null]`, fiscal.BuyerEndpoint{}, false, nil},
		{"empty record", 200, `{"nombre":null,"rnc":null,"urlRecepcion":null}`, fiscal.BuyerEndpoint{}, false, nil},
		{"not found, as a text", 404, `{"mensaje":"RNC no encontrado"}`, fiscal.BuyerEndpoint{}, false, nil},
		{"empty object", 200, `{}`, fiscal.BuyerEndpoint{}, false, fiscal.ErrUnavailable},
		{"another taxpayer", 200, `{"rnc":"101010102","urlRecepcion":"https://a.example.com"}`, fiscal.BuyerEndpoint{}, false, fiscal.ErrUnavailable},
		{"page", 200, htmlPage, fiscal.BuyerEndpoint{}, false, fiscal.ErrUnavailable},
		{"down", 503, ``, fiscal.BuyerEndpoint{}, false, fiscal.ErrUnavailable},
		{"404 with nothing", 404, ``, fiscal.BuyerEndpoint{}, false, fiscal.ErrUnavailable},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newEnv(t, answer(tt.status, tt.body))
			got, listed, err := s.client(t).BuyerEndpoint(testContext(t), signer(t), "101010101")
			wantError(t, err, tt.err)
			if listed != tt.listed || got != tt.want {
				t.Errorf("got %+v, %v", got, listed)
			}
		})
	}
	t.Run("the emulator authenticates at its own address", func(t *testing.T) {
		t.Parallel()
		s := newEnv(t, answer(200, `[{"nombre":"DGII","rnc":"131880681","urlRecepcion":"https://ecf.dgii.gov.do/testecf/emisorreceptor","urlOpcional":"https://ecf.dgii.gov.do/Testecf/autenticacion"}]`))
		got, _, err := s.client(t).BuyerEndpoint(testContext(t), signer(t), emulatorRNC)
		if err != nil || got.Authentication != got.Reception {
			t.Errorf("%+v, %v", got, err)
		}
	})
}

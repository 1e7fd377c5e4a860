package dgii

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

func TestAuthenticationErrors(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		answer     http.HandlerFunc
		want       error
		remembered bool
	}{
		"delegation":                   {answer(400, `"El RNC 00112233445 del certificado no está delegado para realizar transaciones."`), fiscal.ErrNotDelegated, true},
		"delegation, plain":            {answer(400, `El RNC 00112233445 del certificado no está Delegado`), fiscal.ErrNotDelegated, true},
		"another refusal":              {answer(400, `"La semilla `+seedValue+` no es válida"`), fiscal.ErrNotReceived, true},
		"page":                         {answer(400, htmlPage), fiscal.ErrNotReceived, false},
		"down":                         {answer(503, ""), fiscal.ErrNotReceived, false},
		"no token":                     {answer(200, `{"token":"","expira":"2026-10-08T10:00:00Z"}`), fiscal.ErrNotReceived, false},
		"token with a line break":      {answer(200, `{"token":"a\nb","expira":"2026-10-08T10:00:00Z"}`), fiscal.ErrNotReceived, false},
		"token without an expiry time": {answer(200, `{"token":"secret-token-x"}`), fiscal.ErrNotReceived, false},
		"rate limited":                 {answer(429, ""), fiscal.ErrNotReceived, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newEnv(t, answer(200, `{"trackId":"t"}`))
			s.answerTokens(tt.answer)
			c := s.client(t)
			id := signer(t)
			_, err := c.Submit(testContext(t), id, shipment())
			wantError(t, err, tt.want)
			_, err = c.Result(testContext(t), id, "t")
			wantError(t, err, fiscal.ErrUnavailable)
			refusal, refused := c.refusalOf(id, shipment().RNC)
			if refused != tt.remembered || refusal.delegation != errors.Is(tt.want, fiscal.ErrNotDelegated) || strings.Contains(refusal.reason, seedValue) {
				t.Errorf("%+v, %v", refusal, refused)
			}
			if tt.remembered && s.tokenRequests.Load() != 1 {
				t.Errorf("requested %d tokens, want 1", s.tokenRequests.Load())
			}
		})
	}
}

// A server must not be able to make the client sign another document.
func TestOnlySeedsAreSigned(t *testing.T) {
	t.Parallel()
	id := signer(t)
	for name, body := range map[string]string{
		"another document": `<ECF><Encabezado>x</Encabezado></ECF>`,
		"more than a seed": `<SemillaModel><valor>x</valor><fecha>y</fecha><Total>1</Total></SemillaModel>`,
		"nested":           `<SemillaModel><valor>x</valor><fecha><a>b</a></fecha></SemillaModel>`,
		"no value":         `<SemillaModel><fecha>y</fecha></SemillaModel>`,
		"page":             `<html><body>x</body></html>`,
		"entity":           `<!DOCTYPE a [<!ENTITY b "c">]><SemillaModel><valor>&b;</valor></SemillaModel>`,
		"signed":           `<SemillaModel><valor>x</valor><Signature></Signature></SemillaModel>`,
	} {
		if _, _, err := signSeed(id, &response{status: 200, body: []byte(body)}); err == nil {
			t.Errorf("%s was signed", name)
		}
	}
}

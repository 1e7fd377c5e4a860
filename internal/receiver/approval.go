package receiver

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/fiscalhub/fiscalhub/internal/reply"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

// approve takes the commercial response of a buyer. Senders know 200 and 400
// alone; 503 is for when we cannot keep it now.
func (rc *Receiver) approve(x *exchange) answer {
	raw, err := upload(x.w, x.r, xmlsig.SmallLimits().Bytes)
	if err != nil {
		return refuse(http.StatusBadRequest, "No se recibió una aprobación comercial.", err)
	}
	r, err := reply.ReadResponse(raw, rc.Roots, x.now)
	switch {
	case errors.Is(err, reply.ErrSignature):
		return refuse(http.StatusBadRequest, "La firma no es válida.", err)
	case errors.Is(err, reply.ErrUntrusted):
		return refuse(http.StatusBadRequest, "El certificado no es de confianza.", err)
	case err != nil:
		return refuse(http.StatusBadRequest, "El archivo no es una aprobación comercial válida.", err)
	}
	x.note("issuer", r.IssuerRNC)
	x.note("buyer", r.BuyerRNC)
	x.note("encf", r.ENCF)
	err = rc.Responses.Commercial(x.r.Context(), r)
	switch {
	case errors.Is(err, reply.ErrNoDocument), errors.Is(err, reply.ErrMismatch):
		// The same words for both: nobody learns here which documents there are.
		return refuse(http.StatusBadRequest, "No existe un e-CF con esos datos.", err)
	case err != nil:
		return later(fmt.Errorf("keep the response: %w", err))
	}
	return encode(http.StatusOK, struct {
		State string `json:"estado"`
	}{"OK"})
}

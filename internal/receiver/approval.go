package receiver

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/fiscalhub/fiscalhub/internal/reply"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

// approve receives the commercial response of a buyer. The specification has only the
// statuses 200 and 400; approve answers 503 when it cannot store the response now.
func (rc *Receiver) approve(x *exchange) answer {
	raw, err := rc.upload(x, xmlsig.SmallLimits().Bytes)
	if err != nil {
		return refuseUpload("No se recibió una aprobación comercial.", err)
	}
	r, err := reply.ReadResponse(raw, rc.o.Roots, x.now)
	if err != nil {
		return refuseDocument("El archivo no es una aprobación comercial válida.", err)
	}
	if refused := rc.limitSigner(x, r.IssuerRNC, r.BuyerRNC, r.ENCF, r.Signer); refused != nil {
		return *refused
	}
	err = rc.o.Responses.Commercial(x.r.Context(), r)
	switch {
	case errors.Is(err, reply.ErrNoDocument), errors.Is(err, reply.ErrMismatch):
		// Both have the same text, so that a sender cannot find out which documents
		// exist.
		return refuse(http.StatusBadRequest, "No existe un e-CF con esos datos.", err)
	case errors.Is(err, reply.ErrTooMany):
		return refuse(http.StatusBadRequest, "El e-CF ya tiene la cantidad máxima de respuestas comerciales.", err)
	case err != nil:
		return unavailable(fmt.Errorf("store the response: %w", err))
	}
	return encode(http.StatusOK, struct {
		State string `json:"estado"`
	}{"OK"})
}

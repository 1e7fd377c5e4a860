package receiver

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/fiscalhub/fiscalhub/internal/reply"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

var errUnknownBuyer = errors.New("the buyer is not a taxpayer of this service")

// receive answers the e-CF of a supplier. The service does not receive documents yet, but
// the law requires an answer: a signed acknowledgement of the buyer that says "not
// received". Nothing is stored.
//
// The buyer signs nothing for a document that no trusted signer has signed. Otherwise
// anyone could get the buyer's signature for any issuer and number.
func (rc *Receiver) receive(x *exchange) answer {
	raw, err := rc.upload(x, xmlsig.InvoiceLimits().Bytes)
	if err != nil {
		return refuseUpload("No se recibió un e-CF.", err)
	}
	head, err := reply.ReadHead(raw, rc.o.Roots, x.now)
	if err != nil {
		return refuseDocument("No se pudo leer el archivo como e-CF.", err)
	}
	if refused := rc.limitSigner(x, head.IssuerRNC, head.BuyerRNC, head.ENCF, head.Signer); refused != nil {
		return *refused
	}
	scope, ours, err := rc.o.Taxpayers.ByRNC(x.r.Context(), head.BuyerRNC)
	switch {
	case err != nil:
		return unavailable(fmt.Errorf("find the buyer: %w", err))
	case !ours:
		return refuse(http.StatusBadRequest, "El RNC del comprador no corresponde a este receptor.", errUnknownBuyer)
	}
	id, err := rc.o.Identities.Identity(x.r.Context(), scope, x.now)
	if err != nil {
		return unavailable(fmt.Errorf("sign: %w", err))
	}
	receipt, err := reply.Acknowledge(id, reply.Acknowledgement{
		IssuerRNC: head.IssuerRNC, BuyerRNC: head.BuyerRNC, ENCF: head.ENCF, Reason: reply.ReasonSpecification, At: x.now,
	})
	if err != nil {
		return unavailable(err)
	}
	return answer{status: http.StatusOK, kind: kindXML, body: receipt}
}

// refuseDocument returns the answer to a document that cannot be read, with a Spanish
// text for one that is malformed.
func refuseDocument(malformed string, err error) answer {
	switch {
	case errors.Is(err, reply.ErrSignature):
		return refuse(http.StatusBadRequest, "La firma no es válida.", err)
	case errors.Is(err, reply.ErrUntrusted):
		return refuse(http.StatusBadRequest, "El certificado no es de confianza.", err)
	}
	return refuse(http.StatusBadRequest, malformed, err)
}

package receiver

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/fiscalhub/fiscalhub/internal/reply"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

var (
	errCrowded = errors.New("too many documents are received at once")
	errNotOurs = errors.New("the buyer is none of ours")
)

// receive answers to a document of a supplier. None is received here yet, and
// the law asks every taxpayer to answer: the acknowledgement says not received,
// signed for the buyer whom the document names, and nothing is kept.
func (rc *Receiver) receive(x *exchange) answer {
	select {
	case rc.places <- struct{}{}:
		defer func() { <-rc.places }()
	default:
		return later(errCrowded)
	}
	raw, err := upload(x.w, x.r, xmlsig.InvoiceLimits().Bytes)
	if err != nil {
		return refuse(http.StatusBadRequest, "No se recibió un e-CF.", err)
	}
	head, err := reply.ReadHead(raw, rc.Roots, x.now)
	if err != nil {
		return refuse(http.StatusBadRequest, "El archivo no es un e-CF que se pueda leer.", err)
	}
	x.note("issuer", head.IssuerRNC)
	x.note("buyer", head.BuyerRNC)
	x.note("encf", head.ENCF)
	scope, ours, err := rc.Taxpayers.ByRNC(x.r.Context(), head.BuyerRNC)
	switch {
	case err != nil:
		return later(fmt.Errorf("find the buyer: %w", err))
	case !ours:
		return refuse(http.StatusBadRequest, "El RNC comprador no corresponde a este receptor.", errNotOurs)
	}
	id, err := rc.Identities.Identity(x.r.Context(), scope, x.now)
	if err != nil {
		return later(fmt.Errorf("sign: %w", err))
	}
	motive := reply.MotiveSpecification
	if head.Signature != nil {
		motive = reply.MotiveSignature
	}
	receipt, err := reply.Acknowledge(id, reply.Acknowledgement{
		IssuerRNC: head.IssuerRNC, BuyerRNC: head.BuyerRNC, ENCF: head.ENCF, Reason: motive, At: x.now,
	})
	if err != nil {
		return later(err)
	}
	x.note("motive", motive)
	return answer{status: http.StatusOK, kind: kindXML, body: receipt, cause: head.Signature}
}

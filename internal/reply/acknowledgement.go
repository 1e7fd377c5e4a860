package reply

import (
	"crypto/x509"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

// The authority's codes for why a document is not received.
const (
	ReasonSpecification = "1"
	ReasonSignature     = "2"
	ReasonDuplicate     = "3"
	ReasonBuyer         = "4"
)

// An Acknowledgement states whether a taxpayer has received a document.
type Acknowledgement struct {
	IssuerRNC string
	BuyerRNC  string // of the taxpayer who acknowledges
	ENCF      string
	Received  bool
	Reason    string // one of the authority's codes when Received is false
	At        time.Time
}

// Acknowledge writes and signs an acknowledgement (ARECF). It fails when an RNC
// or the e-NCF has another form, or when the reason does not match Received.
func Acknowledge(id *xmlsig.Identity, a Acknowledgement) ([]byte, error) {
	state := "0"
	if !a.Received {
		state = "1"
	}
	switch {
	case !fiscal.IsRNC(a.IssuerRNC) || !fiscal.IsRNC(a.BuyerRNC) || !fiscal.IsENCF(a.ENCF):
		return nil, errors.New("reply: acknowledge: the RNC of the issuer, the RNC of the buyer and the e-NCF are required")
	case a.Received && a.Reason != "":
		return nil, errors.New("reply: acknowledge: a received document must not have a reason")
	case !a.Received && !oneOf(ReasonSpecification, ReasonSignature, ReasonDuplicate, ReasonBuyer)(a.Reason):
		return nil, errors.New("reply: acknowledge: a document that is not received must have a reason from 1 to 4")
	}
	w := xmlsig.NewWriter("ARECF", 1<<10)
	w.Open("DetalleAcusedeRecibo")
	w.Text("Version", "1.0")
	w.Text("RNCEmisor", a.IssuerRNC)
	w.Text("RNCComprador", a.BuyerRNC)
	w.Text("eNCF", a.ENCF)
	w.Text("Estado", state)
	w.Text("CodigoMotivoNoRecibido", a.Reason)
	w.Text("FechaHoraAcuseRecibo", fiscal.FormatDGIITime(a.At))
	w.Close("DetalleAcusedeRecibo")
	document, _, err := w.Sign(id)
	if err != nil {
		return nil, fmt.Errorf("reply: acknowledge: %w", err)
	}
	return document, nil
}

// acknowledgementShape is the shape of an ARECF. The time may have any form,
// because nothing uses it.
var acknowledgementShape = shape{"ARECF", "DetalleAcusedeRecibo", []field{
	{name: "Version", valid: isVersion},
	{name: "RNCEmisor", valid: fiscal.IsRNC},
	{name: "RNCComprador", valid: fiscal.IsRNC},
	{name: "eNCF", valid: fiscal.IsENCF},
	{name: "Estado", valid: oneOf("0", "1")},
	{name: "CodigoMotivoNoRecibido", optional: true, valid: isReasonCode},
	{name: "FechaHoraAcuseRecibo", valid: func(s string) bool { return s != "" }},
}}

// isReasonCode accepts an empty text and one or two digits.
func isReasonCode(s string) bool { return len(s) <= 2 && strings.Trim(s, "0123456789") == "" }

// ReadAcknowledgement reads a buyer's acknowledgement (ARECF) whose signer is trusted at
// now. It fails with ErrSignature, ErrUntrusted or ErrMalformed. The caller must
// check that the acknowledgement is about the document that it expects.
func ReadAcknowledgement(raw []byte, roots *x509.CertPool, now time.Time) (fiscal.Acknowledgement, error) {
	v, kept, err := verifyReply(raw, roots, now)
	if err != nil {
		return fiscal.Acknowledgement{}, err
	}
	values, err := acknowledgementShape.read(v.Root())
	if err != nil {
		return fiscal.Acknowledgement{}, err
	}
	r := fiscal.Acknowledgement{
		Received: values["Estado"] == "0", Reason: values["CodigoMotivoNoRecibido"],
		RNC: values["RNCEmisor"], ENCF: values["eNCF"], BuyerRNC: values["RNCComprador"],
		Signer: xmlsig.Signer(v.Certificate), XML: kept,
	}
	if r.Received {
		// Some receivers write the element empty or as 0 when there is no reason.
		if strings.Trim(r.Reason, "0") != "" {
			return fiscal.Acknowledgement{}, fmt.Errorf("%w: Estado says received, but CodigoMotivoNoRecibido has a reason", ErrMalformed)
		}
		r.Reason = ""
	}
	return r, nil
}

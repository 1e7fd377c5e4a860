package reply

import (
	"errors"
	"fmt"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

// Why a document is not received, by the authority's codes.
const (
	MotiveSpecification = "1"
	MotiveSignature     = "2"
	MotiveDuplicate     = "3"
	MotiveBuyer         = "4"
)

// An Acknowledgement says whether a taxpayer has received a document.
type Acknowledgement struct {
	IssuerRNC string
	BuyerRNC  string // of the taxpayer who acknowledges
	ENCF      string
	Received  bool
	Reason    string // one of the motives when it is not received
	At        time.Time
}

// Acknowledge writes and signs an acknowledgement (ARECF).
func Acknowledge(id *xmlsig.Identity, a Acknowledgement) ([]byte, error) {
	state := "0"
	if !a.Received {
		state = "1"
	}
	switch {
	case !isRNC(a.IssuerRNC) || !isRNC(a.BuyerRNC) || !isENCF(a.ENCF):
		return nil, errors.New("reply: acknowledge: two RNC and an e-NCF are needed")
	case a.Received && a.Reason != "":
		return nil, errors.New("reply: acknowledge: what is received has no motive")
	case !a.Received && !oneOf(MotiveSpecification, MotiveSignature, MotiveDuplicate, MotiveBuyer)(a.Reason):
		return nil, errors.New("reply: acknowledge: what is not received has a motive, 1 to 4")
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

package reply

import (
	"crypto/x509"
	"fmt"
	"strings"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

// receiptShape is that of an ARECF. Whether the motive goes with the state is
// looked at afterwards; of the time nothing is taken, so that it is not judged.
var receiptShape = shape{"ARECF", "DetalleAcusedeRecibo", []field{
	{name: "Version", says: isVersion},
	{name: "RNCEmisor", says: isRNC},
	{name: "RNCComprador", says: isRNC},
	{name: "eNCF", says: isENCF},
	{name: "Estado", says: oneOf("0", "1")},
	{name: "CodigoMotivoNoRecibido", optional: true, says: func(s string) bool { return len(s) <= 2 && (s == "" || digits(s)) }},
	{name: "FechaHoraAcuseRecibo", says: func(s string) bool { return s != "" }},
}}

// ReadReceipt reads a buyer's acknowledgement (ARECF). Its signer must be trusted
// now; that it is the acknowledgement of a certain document is for the caller to
// check.
func ReadReceipt(raw []byte, roots *x509.CertPool, now time.Time) (fiscal.Receipt, error) {
	v, err := verify(raw, xmlsig.SmallLimits(), roots, now)
	if err != nil {
		return fiscal.Receipt{}, err
	}
	said, err := receiptShape.read(v.Root())
	if err != nil {
		return fiscal.Receipt{}, err
	}
	r := fiscal.Receipt{
		Received: said["Estado"] == "0", Reason: said["CodigoMotivoNoRecibido"],
		RNC: said["RNCEmisor"], ENCF: said["eNCF"], BuyerRNC: said["RNCComprador"],
		Signer: xmlsig.Person(v.Certificate), XML: raw,
	}
	if r.Received {
		// Some receivers write the element empty, or a zero, where it has nothing
		// to say.
		if strings.Trim(r.Reason, "0") != "" {
			return fiscal.Receipt{}, fmt.Errorf("%w: it says received, and why it is not", ErrMalformed)
		}
		r.Reason = ""
	}
	return r, nil
}

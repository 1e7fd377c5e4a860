package simulator

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/quagmt/udecimal"

	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

// facts are the values of a document, as text.
type facts struct {
	Type, ENCF, RNC              string
	Buyer, Foreign, BuyerName    string
	Issued, Signed, SequenceEnds string
	Total, ITBIS                 string
	Code                         string // security code
	Signer                       string // the person in the certificate
}

func readFacts(root xmlsig.Element) facts {
	head := root.Child("Encabezado")
	id, issuer, buyer, totals := head.Child("IdDoc"), head.Child("Emisor"), head.Child("Comprador"), head.Child("Totales")
	return facts{
		Type: id.Child("TipoeCF").Text(), ENCF: id.Child("eNCF").Text(), RNC: issuer.Child("RNCEmisor").Text(),
		Buyer: buyer.Child("RNCComprador").Text(), Foreign: buyer.Child("IdentificadorExtranjero").Text(), BuyerName: buyer.Child("RazonSocialComprador").Text(),
		Issued: issuer.Child("FechaEmision").Text(), Signed: root.Child("FechaHoraFirma").Text(), SequenceEnds: id.Child("FechaVencimientoSecuencia").Text(),
		Total: totals.Child("MontoTotal").Text(), ITBIS: totals.Child("TotalITBIS").Text(),
		Code: head.Child("CodigoSeguridadeCF").Text(),
	}
}

// The rows of the table of checks, in the order in which they decide.
const (
	rowSignature   = 1
	rowCertificate = 2
	rowStructure   = 3
	rowIssuer      = 4
	rowDelegation  = 5
	rowNumber      = 6
	rowExpiry      = 7
	rowAnnulled    = 8
	rowTaken       = 9
	rowSameCode    = 10
	rowRoute       = 11
	rowFuture      = 12
	rowIndicator   = 13
	rowBuyer       = 14
	rowDeferred    = 15
	rowCredit      = 16
	rowLine        = 17
	rowTotal       = 18
	rowBuckets     = 19
	rowBuyerID     = 20
	rowNone        = 21
)

// An examination is a document and the findings of the checks, by row of the table.
type examination struct {
	rfce         bool
	file         string
	raw          []byte
	sha          string
	root         xmlsig.Element
	verified     *xmlsig.Verified
	signatureErr error // why the signature is not valid
	facts        facts
	found        [rowNone][]Message
}

func (x *examination) addFinding(row, code int, format string, args ...any) {
	x.found[row] = append(x.found[row], Message{code, fmt.Sprintf(format, args...)})
}

// addFieldFinding adds a finding about a field in DGII's words.
func (x *examination) addFieldFinding(row, code int, field, area string) {
	x.addFinding(row, code, "El campo %s del área %s de la sección Encabezado no es válido.", field, area)
}

// examine makes the checks that need only the document. They are slow, so the caller
// must not hold the lock.
func (c *call) examine(x *examination) {
	s, config, now := c.s, c.config, c.now
	if x.signatureErr != nil {
		row, code := rowSignature, 90001
		if errors.Is(x.signatureErr, xmlsig.ErrCertificate) {
			row, code = rowCertificate, 90002
		}
		x.addFinding(row, code, "La firma no es válida: %s", x.signatureErr)
		return
	}
	if err := s.trusted(x.verified, now); err != nil {
		x.addFinding(rowCertificate, 90002, "El certificado no es válido: %s", err)
		return
	}
	for _, text := range s.documentSchemas.check(x.root, x.facts.Type) {
		x.addFinding(rowStructure, 90003, "%s", text)
	}
	if len(x.found[rowStructure]) == 0 && config.OfficialSchema {
		if text := s.validateOfficialSchema(c.r.Context(), x); text != "" {
			x.addFinding(rowStructure, 90003, "%s", text)
		}
	}
	if len(x.found[rowStructure]) > 0 {
		return
	}
	if signed, err := time.ParseInLocation(timeLayout, x.facts.Signed, zone); err == nil && !x.rfce {
		if c := x.verified.Certificate; signed.Before(c.NotBefore) || signed.After(c.NotAfter) {
			x.addFinding(rowCertificate, 90002, "El certificado no era válido en FechaHoraFirma.")
		}
	}
	x.checkContent(now)
	a := arithmetic{x: x, tolerance: config.tolerance()}
	a.check()
	if buyer := x.facts.Buyer; buyer != "" && config.CheckBuyer != "off" && !validCheckDigit(buyer) {
		x.addFieldFinding(rowBuyerID, 1385, "RNCComprador", "Comprador")
	}
}

// trusted returns an error unless a certificate chains to a trusted root and is valid
// now. It verifies each chain once, because that is a third of the work of a submission.
func (s *Simulator) trusted(v *xmlsig.Verified, now time.Time) error {
	c := v.Certificate
	sum := sha256.Sum256(c.Raw)
	s.mu.Lock()
	trust, known := s.trust, s.chains[sum]
	s.mu.Unlock()
	if known && !now.Before(c.NotBefore) && !now.After(c.NotAfter) {
		return nil
	}
	if err := v.Trusted(trust, now); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.trust == trust && len(s.chains) < 10_000 {
		s.chains[sum] = true
	}
	return nil
}

// summaryLimit is the total from which a consumer invoice is sent as an e-CF and not as
// a summary. The simulator defines it itself, see the package comment.
func summaryLimit() udecimal.Decimal { return udecimal.MustFromUint64(250_000, 0) }

func parseDay(text string) (time.Time, bool) {
	t, err := time.ParseInLocation("2-1-2006", text, zone)
	return t, err == nil
}

// checkContent makes the checks of rows 11 to 14 and 16, which need only the values. Row
// 15 needs the registry.
func (x *examination) checkContent(now time.Time) {
	f := x.facts
	id := x.root.Child("Encabezado").Child("IdDoc")
	total, _ := udecimal.Parse(f.Total) // the structure has been checked
	large := total.GreaterThanOrEqual(summaryLimit())
	switch {
	case x.rfce && f.Type != "32":
		x.addFinding(rowRoute, 90011, "Un resumen es siempre del tipo 32.")
	case x.rfce && large:
		x.addFinding(rowRoute, 90011, "Una factura de consumo desde 250,000.00 no se resume.")
	case !x.rfce && f.Type == "32" && !large:
		x.addFinding(rowRoute, 90011, "Una factura de consumo menor de 250,000.00 se envía como resumen.")
	}
	issued, ok := parseDay(f.Issued)
	if !ok || issued.After(now) {
		x.addFieldFinding(rowFuture, 90012, "FechaEmision", "Emisor")
	}
	if x.rfce {
		return
	}
	if signed, err := time.ParseInLocation(timeLayout, f.Signed, zone); err != nil || signed.After(now) {
		x.addFinding(rowFuture, 90012, "El campo FechaHoraFirma no es válido.")
	}
	if id.Child("IndicadorMontoGravado").IsZero() {
		for item := range x.root.Child("DetallesItems").Children() {
			if kind := item.Child("IndicadorFacturacion").Text(); kind >= "1" && kind <= "3" {
				x.addFieldFinding(rowIndicator, 176, "IndicadorMontoGravado", "IdDoc")
				break
			}
		}
	}
	if f.Type == "31" && f.Buyer == "" || f.Type == "32" && large && (f.Buyer == "" && f.Foreign == "" || f.BuyerName == "") {
		x.addFieldFinding(rowBuyer, 90014, "RNCComprador", "Comprador")
	}
	if id.Child("TipoPago").Text() == "2" {
		if limit, ok := parseDay(id.Child("FechaLimitePago").Text()); !ok || limit.Before(issued) {
			x.addFieldFinding(rowCredit, 90016, "FechaLimitePago", "IdDoc")
		}
	}
}

// decide makes the checks that need the registry or earlier documents. The first row
// with a finding decides the verdict. The caller holds the lock.
func (s *Simulator) decide(c *call, x *examination, n *number, earlier []*document) Verdict {
	own := *x // F13 decides the same document twice
	x = &own
	s.checkRegistry(c, x)
	s.checkNumber(c, x, n, earlier)
	for row := rowSignature; row <= rowCredit; row++ {
		if found := x.found[row]; len(found) > 0 {
			used := row == rowAnnulled || row == rowTaken || row >= rowFuture
			return Verdict{Code: codeRejected, Used: used, Messages: found, Row: row}
		}
	}
	v := Verdict{Code: codeAccepted, Used: true, Row: rowNone}
	for row := rowLine; row <= rowBuyerID; row++ {
		if found := x.found[row]; len(found) > 0 {
			if v.Row == rowNone {
				v.Row = row
			}
			v.Code, v.Messages = codeConditional, append(v.Messages, found...)
		}
	}
	if v.Code == codeConditional && c.config.Strict {
		v.Code = codeRejected
		s.state.ResetCount++
	}
	return v
}

// checkRegistry makes the checks of rows 4 to 7, 15 and a part of 20. It does nothing when
// the signature or the structure is not valid.
func (s *Simulator) checkRegistry(c *call, x *examination) {
	if len(x.found[rowSignature])+len(x.found[rowCertificate])+len(x.found[rowStructure]) > 0 {
		return
	}
	f := x.facts
	t := s.state.Taxpayers[f.RNC]
	issued, _ := parseDay(f.Issued) // row 12 checks it
	switch {
	case t == nil:
		x.addFinding(rowIssuer, 90004, "El RNC emisor %s no existe.", f.RNC)
		return
	case t.Active != nil && !*t.Active:
		x.addFinding(rowIssuer, 90004, "El RNC emisor %s no está activo.", f.RNC)
	case t.Electronic != nil && !*t.Electronic:
		x.addFinding(rowIssuer, 90004, "El RNC emisor %s no es emisor electrónico.", f.RNC)
	case t.Since != "" && issued.Format(time.DateOnly) < t.Since:
		x.addFinding(rowIssuer, 90004, "FechaEmision es anterior al inicio como emisor electrónico.")
	}
	if !t.delegated(f.Signer, "signer") {
		x.addFinding(rowDelegation, 90005, "El firmante %s no está delegado por el RNC %s.", f.Signer, f.RNC)
	}
	refused := 135
	if x.rfce {
		refused = 75
	}
	kind, _, ok := splitENCF(f.ENCF)
	r, authorized := t.rangeOf(c.amb, f.ENCF)
	if !ok || kind != f.Type || !authorized {
		x.addFinding(rowNumber, refused, "Número de secuencia no autorizada.")
	}
	if ends, err := time.ParseInLocation(time.DateOnly, r.Expires, zone); authorized && err == nil {
		stated, _ := parseDay(f.SequenceEnds)
		if !c.now.Before(ends.AddDate(0, 0, 1)) || f.Type != "32" && f.Type != "34" && !stated.Equal(ends) {
			x.addFieldFinding(rowExpiry, 145, "FechaVencimientoSecuencia", "IdDoc")
		}
	}
	if !x.root.Child("Encabezado").Child("IdDoc").Child("IndicadorEnvioDiferido").IsZero() && !t.Deferred {
		x.addFieldFinding(rowDeferred, 90015, "IndicadorEnvioDiferido", "IdDoc")
	}
	if f.Buyer != "" && c.config.CheckBuyer == "registry" && s.state.Taxpayers[f.Buyer] == nil {
		x.addFieldFinding(rowBuyerID, 1385, "RNCComprador", "Comprador")
	}
}

// checkNumber makes the checks of rows 8 to 10.
func (s *Simulator) checkNumber(c *call, x *examination, n *number, earlier []*document) {
	refused := 135
	if x.rfce {
		refused = 75
	}
	if n.Annulled {
		x.addFinding(rowAnnulled, refused, "Número de secuencia anulado.")
	}
	for _, d := range earlier {
		if !d.reusable(c.now) {
			x.addFinding(rowTaken, refused, "Número de secuencia no autorizada.")
			break
		}
	}
	if x.rfce && n.Codes[x.facts.Code] {
		x.addFinding(rowSameCode, 75, "Número de secuencia no autorizada.")
	}
}

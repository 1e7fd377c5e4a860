package simulator

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/quagmt/udecimal"

	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

// facts are what a document says of itself, as text.
type facts struct {
	Type, ENCF, RNC              string
	Buyer, Foreign, BuyerName    string
	Issued, Signed, SequenceEnds string
	Total, ITBIS                 string
	Code                         string // security code
	Signer                       string // whom the certificate names
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

// An examination is a document and what was found in it, by row of the table of
// checks.
type examination struct {
	rfce       bool
	file       string
	raw        []byte
	sha        string
	root       xmlsig.Element
	verified   *xmlsig.Verified
	unverified error // why not
	facts      facts
	found      [rowNone][]Message
}

func (x *examination) find(row, code int, format string, args ...any) {
	x.found[row] = append(x.found[row], Message{code, fmt.Sprintf(format, args...)})
}

// field is a finding in DGII's words.
func (x *examination) field(row, code int, field, area string) {
	x.find(row, code, "El campo %s del área %s de la sección Encabezado no es válido.", field, area)
}

// examine makes the checks that need nothing but the document. The lock is not
// held: these are the ones that take time.
func (c *call) examine(x *examination) {
	s, config, now := c.s, c.config, c.now
	if x.unverified != nil {
		row, code := rowSignature, 90001
		if errors.Is(x.unverified, xmlsig.ErrCertificate) {
			row, code = rowCertificate, 90002
		}
		x.find(row, code, "La firma no es válida: %s", x.unverified)
		return
	}
	if err := s.trusted(x.verified, now); err != nil {
		x.find(rowCertificate, 90002, "El certificado no es válido: %s", err)
		return
	}
	for _, text := range s.structure.check(x.root, x.facts.Type) {
		x.find(rowStructure, 90003, "%s", text)
	}
	if len(x.found[rowStructure]) == 0 && config.OfficialSchema {
		if text := s.askSchema(c.r.Context(), x); text != "" {
			x.find(rowStructure, 90003, "%s", text)
		}
	}
	if len(x.found[rowStructure]) > 0 {
		return
	}
	if signed, err := time.ParseInLocation("02-01-2006 15:04:05", x.facts.Signed, zone); err == nil && !x.rfce {
		if c := x.verified.Certificate; signed.Before(c.NotBefore) || signed.After(c.NotAfter) {
			x.find(rowCertificate, 90002, "El certificado no era válido en FechaHoraFirma.")
		}
	}
	x.checkContent(now)
	a := arithmetic{x: x, tolerance: config.tolerance()}
	a.check()
	if buyer := x.facts.Buyer; buyer != "" && config.CheckBuyer != "off" && !validCheckDigit(buyer) {
		x.field(rowBuyerID, 1385, "RNCComprador", "Comprador")
	}
}

// trusted tells whether a certificate chains to a root and is in date. The chain
// of each is looked at once, which is a third of the work of a submission.
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

// largeConsumer is from where a consumer invoice goes whole to the authority.
func largeConsumer() udecimal.Decimal { return udecimal.MustFromUint64(250_000, 0) }

func day(text string) (time.Time, bool) {
	t, err := time.ParseInLocation("2-1-2006", text, zone)
	return t, err == nil
}

// checkContent makes rows 11 to 14 and 16, which look at values alone. Row 15
// needs the registry.
func (x *examination) checkContent(now time.Time) {
	f := x.facts
	id := x.root.Child("Encabezado").Child("IdDoc")
	total, _ := udecimal.Parse(f.Total) // its structure has been checked
	large := total.GreaterThanOrEqual(largeConsumer())
	switch {
	case x.rfce && f.Type != "32":
		x.find(rowRoute, 90011, "Un resumen es siempre del tipo 32.")
	case x.rfce && large:
		x.find(rowRoute, 90011, "Una factura de consumo desde 250,000.00 no se resume.")
	case !x.rfce && f.Type == "32" && !large:
		x.find(rowRoute, 90011, "Una factura de consumo menor de 250,000.00 se envía como resumen.")
	}
	issued, ok := day(f.Issued)
	if !ok || issued.After(now) {
		x.field(rowFuture, 90012, "FechaEmision", "Emisor")
	}
	if x.rfce {
		return
	}
	if signed, err := time.ParseInLocation("02-01-2006 15:04:05", f.Signed, zone); err != nil || signed.After(now) {
		x.find(rowFuture, 90012, "El campo FechaHoraFirma no es válido.")
	}
	if id.Child("IndicadorMontoGravado").IsZero() {
		for item := range x.root.Child("DetallesItems").Children() {
			if kind := item.Child("IndicadorFacturacion").Text(); kind >= "1" && kind <= "3" {
				x.field(rowIndicator, 176, "IndicadorMontoGravado", "IdDoc")
				break
			}
		}
	}
	if f.Type == "31" && f.Buyer == "" || f.Type == "32" && large && (f.Buyer == "" && f.Foreign == "" || f.BuyerName == "") {
		x.field(rowBuyer, 90014, "RNCComprador", "Comprador")
	}
	if id.Child("TipoPago").Text() == "2" {
		if limit, ok := day(id.Child("FechaLimitePago").Text()); !ok || limit.Before(issued) {
			x.field(rowCredit, 90016, "FechaLimitePago", "IdDoc")
		}
	}
}

// decide makes the checks that need the registry and what came before, and gives
// the verdict of the first row that finds something. The lock is held.
func (s *Simulator) decide(c *call, x *examination, n *number, earlier []*document) Verdict {
	own := *x // another twin of the document may be decided after this one
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

// checkRegistry makes rows 4 to 7, 15 and the second half of 20. Without a
// signature or a structure there is nothing to look up.
func (s *Simulator) checkRegistry(c *call, x *examination) {
	if len(x.found[rowSignature])+len(x.found[rowCertificate])+len(x.found[rowStructure]) > 0 {
		return
	}
	f := x.facts
	t := s.state.Taxpayers[f.RNC]
	issued, _ := day(f.Issued) // row 12 looks at it
	switch {
	case t == nil:
		x.find(rowIssuer, 90004, "El RNC emisor %s no existe.", f.RNC)
		return
	case t.Active != nil && !*t.Active:
		x.find(rowIssuer, 90004, "El RNC emisor %s no está activo.", f.RNC)
	case t.Electronic != nil && !*t.Electronic:
		x.find(rowIssuer, 90004, "El RNC emisor %s no es emisor electrónico.", f.RNC)
	case t.Since != "" && issued.Format(time.DateOnly) < t.Since:
		x.find(rowIssuer, 90004, "FechaEmision es anterior al inicio como emisor electrónico.")
	}
	if !t.delegated(f.Signer, "signer") {
		x.find(rowDelegation, 90005, "El firmante %s no está delegado por el RNC %s.", f.Signer, f.RNC)
	}
	refused := 135
	if x.rfce {
		refused = 75
	}
	kind, _, ok := splitENCF(f.ENCF)
	r, authorized := t.rangeOf(c.amb, f.ENCF)
	if !ok || kind != f.Type || !authorized {
		x.find(rowNumber, refused, "Número de secuencia no autorizada.")
	}
	if ends, err := time.ParseInLocation(time.DateOnly, r.Expires, zone); authorized && err == nil {
		stated, _ := day(f.SequenceEnds)
		if !c.now.Before(ends.AddDate(0, 0, 1)) || f.Type != "32" && f.Type != "34" && !stated.Equal(ends) {
			x.field(rowExpiry, 145, "FechaVencimientoSecuencia", "IdDoc")
		}
	}
	if !x.root.Child("Encabezado").Child("IdDoc").Child("IndicadorEnvioDiferido").IsZero() && !t.Deferred {
		x.field(rowDeferred, 90015, "IndicadorEnvioDiferido", "IdDoc")
	}
	if f.Buyer != "" && c.config.CheckBuyer == "registry" && s.state.Taxpayers[f.Buyer] == nil {
		x.field(rowBuyerID, 1385, "RNCComprador", "Comprador")
	}
}

// checkNumber makes rows 8 to 10.
func (s *Simulator) checkNumber(c *call, x *examination, n *number, earlier []*document) {
	refused := 135
	if x.rfce {
		refused = 75
	}
	if n.Annulled {
		x.find(rowAnnulled, refused, "Número de secuencia anulado.")
	}
	for _, d := range earlier {
		if !d.free(c.now) {
			x.find(rowTaken, refused, "Número de secuencia no autorizada.")
			break
		}
	}
	if x.rfce && n.Codes[x.facts.Code] {
		x.find(rowSameCode, 75, "Número de secuencia no autorizada.")
	}
}

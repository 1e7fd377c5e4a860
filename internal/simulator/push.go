package simulator

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"strings"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

// A Push is a document that a peer sends to the service under test.
type Push struct {
	URL    string `json:"url"`                // base of the receiver
	Auth   string `json:"auth_url,omitempty"` // base of its authentication; empty sends no token
	Buyer  string `json:"buyer,omitempty"`    // of an e-CF
	Type   string `json:"type,omitempty"`     // of an e-CF: 31 (the default), 33, 34 or 44
	ENCF   string `json:"encf,omitempty"`     // of an e-CF; the next one by default
	Issuer string `json:"issuer,omitempty"`   // of the e-CF that an ACECF is about
	Issued string `json:"issued,omitempty"`   // dd-mm-yyyy
	Total  string `json:"total,omitempty"`
	Reject bool   `json:"reject,omitempty"` // commercially
	Reason string `json:"reason,omitempty"`
	// Hostile makes the document one that must be refused: unsigned, altered, comment, cdata, doctype,
	// instruction, two-signatures, signature-first, wrapped, object or sha1.
	Hostile string `json:"hostile,omitempty"`
}

// A Pushed is the result of a Push.
type Pushed struct {
	ENCF   string `json:"encf"`
	XML    string `json:"xml"` // as it was sent
	Status int    `json:"status"`
	Answer string `json:"answer"`
}

// SendECF makes a peer send an e-CF in the way of DGII's own emulator: without an XML
// declaration, with Version 1 and unusual part headers.
func (s *Simulator) SendECF(ctx context.Context, rnc string, p Push) (*Pushed, error) {
	p.Type, p.Total = cmp.Or(p.Type, "31"), cmp.Or(p.Total, "118.00")
	if !strings.Contains("31 33 34 44", p.Type) {
		return nil, fmt.Errorf("simulator: send e-CF: type must be 31, 33, 34 or 44, not %s", p.Type)
	}
	now := s.clock.now().In(zone)
	s.mu.Lock()
	if p.ENCF == "" {
		s.state.Counter++
		p.ENCF = fmt.Sprintf("E%s%010d", p.Type, s.state.Counter)
	}
	name := "Contribuyente " + rnc
	if t := s.state.Taxpayers[rnc]; t != nil {
		name = t.Name
	}
	s.mu.Unlock()
	p.Issued = cmp.Or(p.Issued, now.Format(dateLayout))
	w := xmlsig.NewWriter("ECF", 2<<10)
	w.Append(func(b []byte) []byte { return appendPushedECF(b, rnc, name, p, now) })
	return s.signAndPush(ctx, rnc, p, w, "/fe/recepcion/api/ecf", textproto.MIMEHeader{
		"Content-Disposition": {fmt.Sprintf(`form-data; name="xml"; filename="%s%s.xml"`, rnc, p.ENCF)},
		"Content-Type":        {"multipart/form-data;"},
	})
}

func appendPushedECF(b []byte, rnc, name string, p Push, now time.Time) []byte {
	sequence := "<FechaVencimientoSecuencia>31-12-" + now.AddDate(1, 0, 0).Format("2006") + "</FechaVencimientoSecuencia>"
	reference := ""
	if p.Type == "33" || p.Type == "34" {
		reference = "<InformacionReferencia><NCFModificado>E310000000001</NCFModificado><FechaNCFModificado>" + p.Issued + "</FechaNCFModificado><CodigoModificacion>3</CodigoModificacion></InformacionReferencia>"
	}
	if p.Type == "34" {
		sequence = "<IndicadorNotaCredito>0</IndicadorNotaCredito>"
	}
	b = append(b, "<Encabezado><Version>1</Version><IdDoc><TipoeCF>"+p.Type+"</TipoeCF><eNCF>"+p.ENCF+"</eNCF>"+sequence+
		"<IndicadorMontoGravado>0</IndicadorMontoGravado><TipoIngresos>01</TipoIngresos><TipoPago>1</TipoPago></IdDoc><Emisor><RNCEmisor>"+rnc+"</RNCEmisor><RazonSocialEmisor>"...)
	b = xmlsig.AppendText(b, name)
	b = append(b, "</RazonSocialEmisor><DireccionEmisor>Calle de Prueba</DireccionEmisor><FechaEmision>"+p.Issued+"</FechaEmision></Emisor><Comprador><RNCComprador>"+p.Buyer+
		"</RNCComprador><RazonSocialComprador>Comprador</RazonSocialComprador></Comprador><Totales><MontoExento>"+p.Total+"</MontoExento><MontoTotal>"+p.Total+"</MontoTotal></Totales></Encabezado>"+
		"<DetallesItems><Item><NumeroLinea>1</NumeroLinea><IndicadorFacturacion>4</IndicadorFacturacion><NombreItem>Prueba</NombreItem><IndicadorBienoServicio>2</IndicadorBienoServicio>"+
		"<CantidadItem>1.00</CantidadItem><PrecioUnitarioItem>"+p.Total+"</PrecioUnitarioItem><MontoItem>"+p.Total+"</MontoItem></Item></DetallesItems>"+reference+
		"<FechaHoraFirma>"+now.Format(timeLayout)+"</FechaHoraFirma>"...)
	return b
}

// SendACECF makes a peer send a commercial approval or rejection, with the unusual part
// headers of DGII's own and, if possible, an amount without decimals. Missing values are
// taken from the document that the authority has received.
func (s *Simulator) SendACECF(ctx context.Context, rnc string, p Push) (*Pushed, error) {
	s.mu.Lock()
	for _, e := range s.state.Environments {
		for _, d := range e.documentsOf(p.Issuer, p.ENCF) {
			p.Issued, p.Total = cmp.Or(p.Issued, d.Facts.Issued), cmp.Or(p.Total, strings.TrimSuffix(d.Facts.Total, ".00"))
		}
	}
	s.mu.Unlock()
	w := xmlsig.NewWriter("ACECF", 1<<10, xmlsig.Namespace{Prefix: "xsi", URI: xsi}, xmlsig.Namespace{Prefix: "xsd", URI: xsd})
	w.Open("DetalleAprobacionComercial")
	w.Text("Version", "1.0")
	w.Text("RNCEmisor", p.Issuer)
	w.Text("eNCF", p.ENCF)
	w.Text("FechaEmision", p.Issued)
	w.Text("MontoTotal", p.Total)
	w.Text("RNCComprador", rnc)
	if p.Reject {
		w.Text("Estado", "2")
		w.Text("DetalleMotivoRechazo", cmp.Or(p.Reason, "Rechazado por el comprador"))
	} else {
		w.Text("Estado", "1")
	}
	w.Text("FechaHoraAprobacionComercial", s.clock.now().In(zone).Format(timeLayout))
	w.Close("DetalleAprobacionComercial")
	return s.signAndPush(ctx, rnc, p, w, "/fe/aprobacioncomercial/api/ecf", textproto.MIMEHeader{
		"Content-Disposition": {"form-data; name=xml; filename=aprobacionComercial.xml; filename*=utf-8''aprobacionComercial.xml"},
	})
}

// signAndPush signs the document in w and sends it.
func (s *Simulator) signAndPush(ctx context.Context, rnc string, p Push, w *xmlsig.Writer, path string, header textproto.MIMEHeader) (*Pushed, error) {
	id, err := s.Identity(s.peerSigner(rnc))
	if err != nil {
		return nil, err
	}
	signed, _, err := w.Sign(id)
	if err != nil {
		return nil, fmt.Errorf("simulator: push: %w", err)
	}
	_, document, _ := strings.Cut(string(signed), "?>")
	if document, err = makeHostile(document, p.Hostile); err != nil {
		return nil, err
	}
	token := ""
	if p.Auth != "" {
		if token, err = s.peerToken(ctx, id, p.Auth); err != nil {
			return nil, err
		}
	}
	status, body, err := s.post(ctx, strings.TrimRight(p.URL, "/")+path, token, header, []byte(document))
	if err != nil {
		return nil, err
	}
	return &Pushed{ENCF: p.ENCF, XML: document, Status: status, Answer: string(body)}, nil
}

// makeHostile changes a document so that a receiver must refuse it.
func makeHostile(document, how string) (string, error) {
	start := strings.Index(document, "<Signature")
	end := strings.Index(document, "</Signature>") + len("</Signature>")
	head, signature, tail := document[:start], document[start:end], document[end:]
	root := head[1:strings.IndexAny(head, " >")]
	open := strings.IndexByte(head, '>') + 1
	switch how {
	case "":
		return document, nil
	case "unsigned":
		return head + tail, nil
	case "altered":
		return strings.Replace(document, "<RNCEmisor>1", "<RNCEmisor>9", 1), nil
	case "comment":
		return strings.Replace(document, "</RNCEmisor>", "<!-- --></RNCEmisor>", 1), nil
	case "cdata":
		return strings.Replace(strings.Replace(document, "<RNCEmisor>", "<RNCEmisor><![CDATA[", 1), "</RNCEmisor>", "]]></RNCEmisor>", 1), nil
	case "doctype":
		return `<!DOCTYPE ` + root + ` [<!ENTITY x SYSTEM "file:///etc/hostname">]>` + document, nil
	case "instruction":
		return head[:open] + "<?x y?>" + head[open:] + signature + tail, nil
	case "two-signatures":
		return head + signature + signature + tail, nil
	case "signature-first":
		return head[:open] + signature + head[open:] + tail, nil
	case "wrapped":
		return "<" + root + ">" + document + "</" + root + ">", nil
	case "object":
		return strings.Replace(document, "</Signature>", "<Object>x</Object></Signature>", 1), nil
	case "sha1":
		return strings.Replace(document, "http://www.w3.org/2001/04/xmlenc#sha256", "http://www.w3.org/2000/09/xmldsig#sha1", 1), nil
	}
	return "", fmt.Errorf("simulator: push: unknown value of hostile: %q", how)
}

func (s *Simulator) peerToken(ctx context.Context, id *xmlsig.Identity, base string) (string, error) {
	base = strings.TrimRight(base, "/") + "/fe/autenticacion/api/"
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"semilla", nil)
	if err != nil {
		return "", fmt.Errorf("simulator: push: %w", err)
	}
	_, body, err := s.do(r)
	if err != nil {
		return "", err
	}
	seed, err := xmlsig.Parse(body, xmlsig.SmallLimits())
	if err != nil {
		return "", fmt.Errorf("simulator: push: seed: %w", err)
	}
	signed, err := id.SignDocument(seed)
	if err != nil {
		return "", fmt.Errorf("simulator: push: seed: %w", err)
	}
	_, body, err = s.post(ctx, base+"ValidacionCertificado", "", textproto.MIMEHeader{
		"Content-Disposition": {`form-data; name="xml"; filename="semilla.xml"`}, "Content-Type": {"text/xml"},
	}, signed)
	if err != nil {
		return "", err
	}
	var answer struct {
		Token string `json:"token"`
	}
	if err := json.Unmarshal(body, &answer); err != nil || answer.Token == "" {
		return "", fmt.Errorf("simulator: push: no token in %.200q", body)
	}
	return answer.Token, nil
}

func (s *Simulator) post(ctx context.Context, url, token string, header textproto.MIMEHeader, document []byte) (int, []byte, error) {
	var body bytes.Buffer
	m := multipart.NewWriter(&body)
	part, err := m.CreatePart(header)
	if err != nil {
		return 0, nil, fmt.Errorf("simulator: push: %w", err)
	}
	_, _ = part.Write(document) // a buffer accepts all writes
	_ = m.Close()               // a buffer accepts all writes
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, &body)
	if err != nil {
		return 0, nil, fmt.Errorf("simulator: push: %w", err)
	}
	r.Header.Set("Content-Type", m.FormDataContentType())
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	return s.do(r)
}

func (s *Simulator) do(r *http.Request) (int, []byte, error) {
	answer, err := s.client.Do(r)
	if err != nil {
		return 0, nil, fmt.Errorf("simulator: push: %w", err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, 1<<20))
	if err != nil {
		return 0, nil, fmt.Errorf("simulator: push: %w", err)
	}
	return answer.StatusCode, body, nil
}

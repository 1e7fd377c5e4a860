package simulator

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// A stringMessage has its code as text. The responses about RFCEs use it.
type stringMessage struct {
	Code string `json:"codigo"`
	Text string `json:"valor"`
}

// A numberMessage has its code as a number, after the text.
type numberMessage struct {
	Text string `json:"valor"`
	Code int    `json:"codigo"`
}

// messages returns the messages of a verdict, or far too many for F19.
func (c *call) messages(d *document) []Message {
	if !c.hasFault("F19") {
		return d.Verdict.Messages
	}
	long := strings.Repeat("Ñandú “raro” \u202e\u0007 🙂 <b>&amp;</b> ", 250)
	flood := make([]Message, 200)
	for i := range flood {
		flood[i] = Message{90019 + i, long[:10_000]}
	}
	return flood
}

func (c *call) stringMessages(messages []Message) []stringMessage {
	if len(messages) == 0 && !c.config.documented() {
		return nil
	}
	out := make([]stringMessage, len(messages))
	for i, m := range messages {
		out[i] = stringMessage{strconv.Itoa(m.Code), m.Text}
	}
	return out
}

func (c *call) numberMessages(messages []Message, final bool) []numberMessage {
	if len(messages) == 0 && final && !c.config.documented() {
		return []numberMessage{{}}
	}
	out := make([]numberMessage, len(messages))
	for i, m := range messages {
		out[i] = numberMessage{m.Text, m.Code}
	}
	return out
}

// formatReceived returns the time of reception in the form of the wire.
func (c *call) formatReceived(t time.Time) *string {
	layout := "1/2/2006 3:04:05 PM"
	if c.config.documented() {
		layout = "2006-01-02T15:04:05"
	}
	text := t.In(zone).Format(layout)
	return &text
}

// serveResult looks a document up by its trackId.
func (c *call) serveResult() response {
	c.markLookedUp()
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	id := c.query["trackid"]
	d := c.s.state.Environments[c.amb].Documents[id]
	if d == nil || d.RFCE {
		return c.resultOf(id, nil, codeNotFound)
	}
	interval := c.now.Sub(d.Polled)
	if !d.Polled.IsZero() && interval < c.config.pollInterval() && !c.s.clock.isFrozen() {
		c.s.addViolationLocked(c, FastPolling, "looked up again after "+interval.Round(time.Millisecond).String())
	}
	d.Polled = c.now
	d.Polls++
	code := d.codeAt(c.now)
	switch {
	case c.hasFault("F11"):
		code = codeInProcess
	case c.hasFault("F12"):
		code = codeNotFound
	case c.hasFault("F17") && code != codeNotFound:
		d.Verdict, d.Stuck, d.Due = *c.fault.Verdict, false, minTime(d.Due, c.now)
		code = d.Verdict.Code
	case c.hasFault("F16") && code == codeAccepted && d.Polls > max(c.fault.After, 1):
		d.Verdict = Verdict{Code: codeRejected, Used: true, Messages: []Message{{90016, "El resultado ha cambiado."}}}
		code = codeRejected
	}
	if d.decided(c.now) && code == d.Verdict.Code {
		c.markVerdictSeen(d)
	}
	return c.resultOf(id, d, code)
}

// A resultHead has the first members of the response of the look-up by trackId. The e-NCF
// follows, whose name depends on the wire, and then the resultTail.
type resultHead struct {
	TrackID string  `json:"trackId"`
	Code    any     `json:"codigo"` // a number or a text, by wire
	State   string  `json:"estado"`
	RNC     *string `json:"rnc"`
}

type resultTail struct {
	Used     bool            `json:"secuenciaUtilizada"`
	Received *string         `json:"fechaRecepcion"`
	Messages []numberMessage `json:"mensajes"`
}

// resultOf returns the response of the look-up by trackId.
func (c *call) resultOf(id string, d *document, code int) response {
	head := resultHead{TrackID: id}
	state := stateName(code)
	tail := resultTail{Messages: c.numberMessages(nil, false)}
	var number *string
	if d != nil && code != codeNotFound {
		rnc, encf := d.Facts.RNC, d.Facts.ENCF
		if code != codeInProcess {
			tail.Used, tail.Messages = d.Verdict.Used, c.numberMessages(c.messages(d), true)
		}
		if c.hasFault("F15") {
			if v := c.fault.Verdict; v != nil {
				code, state, tail.Used = v.Code, stateName(v.Code), v.Used
			}
			switch c.fault.variant() {
			case "other-rnc":
				rnc = "101000000"
			case "other-encf":
				encf = encf[:len(encf)-1] + string('0'+(encf[len(encf)-1]-'0'+1)%10)
			case "contradiction":
				state = stateName(codeAccepted)
				if code == codeAccepted {
					state = stateName(codeRejected)
				}
			case "unknown-code":
				code, state = 7, "Desconocido"
			}
		}
		head.RNC, number, tail.Received = &rnc, &encf, c.formatReceived(d.Received)
	}
	head.Code, head.State = strconv.Itoa(code), state
	if c.config.documented() {
		head.Code = code
		return jsonResponse(http.StatusOK, struct {
			resultHead
			ENCF *string `json:"eNCF"`
			resultTail
		}{head, number, tail})
	}
	return jsonResponse(http.StatusOK, struct {
		resultHead
		ENCF *string `json:"encf"`
		resultTail
	}{head, number, tail})
}

// decisiveDocument returns the document that a look-up by number shows: the accepted one,
// or the last one with a verdict, or nil.
func decisiveDocument(docs []*document, now time.Time) *document {
	var last *document
	for _, d := range docs {
		switch code := d.codeAt(now); {
		case code == codeNotFound || code == codeInProcess:
		case d.Verdict.valid():
			return d
		default:
			last = d
		}
	}
	return last
}

// serveState looks a document up by its e-NCF. It shows a conditional acceptance only of
// summaries; a conditional e-CF is shown as accepted.
func (c *call) serveState() response {
	c.markLookedUp()
	rnc, encf := c.query["rncemisor"], strings.ToUpper(c.query["ncfelectronico"])
	if rnc == "" || encf == "" {
		return jsonResponse(http.StatusBadRequest, "El RNC emisor y el NCF electrónico son requeridos.")
	}
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	d := decisiveDocument(c.s.state.Environments[c.amb].documentsOf(rnc, encf), c.now)
	if !c.s.delegated(c.person, rnc) && (d == nil || !c.s.delegated(c.person, d.Facts.Buyer)) {
		return jsonResponse(http.StatusBadRequest, "El RNC del token no está autorizado para consultar este e-NCF.")
	}
	if buyer := c.query["rnccomprador"]; d != nil && buyer != "" && buyer != d.Facts.Buyer {
		d = nil
	}
	if code := c.query["codigoseguridad"]; d != nil && code != "" && code != d.Facts.Code {
		d = nil
	}
	type shape struct {
		Code    int         `json:"codigo"`
		State   string      `json:"estado"`
		RNC     string      `json:"rncEmisor"`
		ENCF    string      `json:"ncfElectronico"`
		Total   json.Number `json:"montoTotal"`
		ITBIS   json.Number `json:"totalITBIS"`
		Issued  *string     `json:"fechaEmision"`
		Signed  *string     `json:"fechaFirma"`
		Buyer   *string     `json:"rncComprador"`
		Safety  *string     `json:"codigoSeguridad"`
		Foreign *string     `json:"idExtranjero"`
	}
	v := shape{State: stateName(codeNotFound), RNC: rnc, ENCF: encf, Total: "0", ITBIS: "0"}
	if d == nil || c.hasFault("F12") {
		return jsonResponse(http.StatusOK, v)
	}
	c.markVerdictSeen(d)
	f := d.Facts
	v.Code, v.State = d.Verdict.Code, stateName(d.Verdict.Code)
	if v.Code == codeConditional && !d.RFCE {
		v.Code, v.State = codeAccepted, stateName(codeAccepted)
	} else if v.Code == codeConditional {
		v.State = "Aceptado condicional"
	}
	v.Total, v.ITBIS = jsonAmount(f.Total), jsonAmount(f.ITBIS)
	v.Issued, v.Signed, v.Buyer, v.Safety, v.Foreign = stringPtr(f.Issued), stringPtr(f.Signed), stringPtr(f.Buyer), stringPtr(f.Code), stringPtr(f.Foreign)
	if c.hasFault("F15") {
		switch c.fault.variant() {
		case "other-rnc":
			v.RNC = "101000000"
		case "other-code":
			v.Safety = stringPtr("ZZZZZZ")
		case "other-buyer":
			v.Buyer = stringPtr("101000000")
		case "other-total":
			v.Total = "1.00"
		}
	}
	return jsonResponse(http.StatusOK, v)
}

func stringPtr(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// jsonAmount returns an amount as a JSON number, without leading zeros.
func jsonAmount(s string) json.Number {
	if s = strings.TrimLeft(s, "0"); s == "" || s[0] == '.' {
		s = "0" + s
	}
	return json.Number(s)
}

// delegated reports whether a person acts for a taxpayer. The caller holds the lock.
func (s *Simulator) delegated(person, rnc string) bool {
	t := s.state.Taxpayers[rnc]
	return t != nil && t.delegated(person, "")
}

type trackIDView struct {
	TrackID  *string `json:"trackId"`
	State    string  `json:"estado"`
	Received *string `json:"fechaRecepcion"`
}

// serveTrackIDs looks the submissions of an e-NCF up.
func (c *call) serveTrackIDs() response {
	c.markLookedUp()
	rnc, encf := c.query["rncemisor"], strings.ToUpper(c.query["encf"])
	refusal := ""
	switch _, _, ok := splitENCF(encf); {
	case rnc == "":
		refusal = "El RNC es requerido."
	case encf == "":
		refusal = "El ENCF es requerido."
	case len(rnc) != 9 && len(rnc) != 11:
		refusal = "La longitud del RNC no es válida."
	case len(encf) != 13:
		refusal = "La longitud del ENCF no es válida."
	case !ok:
		refusal = "El ENCF no es válido."
	}
	if refusal != "" {
		return jsonResponse(http.StatusBadRequest, refusal)
	}
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	if !c.s.delegated(c.person, rnc) {
		return jsonResponse(http.StatusBadRequest, "El RNC del token no está autorizado para consultar este e-NCF.")
	}
	var views []trackIDView
	for _, d := range c.s.state.Environments[c.amb].documentsOf(rnc, encf) {
		if code := d.codeAt(c.now); !d.RFCE && code != codeNotFound && !c.hasFault("F12") {
			if code != codeInProcess {
				c.markVerdictSeen(d)
			}
			views = append(views, trackIDView{&d.ID, stateName(code), c.formatReceived(d.Received)})
		}
	}
	switch {
	case len(views) > 0:
		return jsonResponse(http.StatusOK, views)
	case c.config.documented():
		return jsonResponse(http.StatusNotFound, trackIDView{State: "TrackId no encontrado."})
	}
	return jsonResponse(http.StatusOK, []trackIDView{{State: stateName(codeNotFound)}})
}

// serveSummaryState looks a summary (RFCE) up.
func (c *call) serveSummaryState() response {
	c.markLookedUp()
	rnc, encf, code := c.query["rnc_emisor"], strings.ToUpper(c.query["encf"]), c.query["cod_seguridad_ecf"]
	if rnc == "" || encf == "" || code == "" {
		return jsonResponse(http.StatusBadRequest, "El RNC, el ENCF y el código de seguridad son requeridos.")
	}
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	if !c.s.delegated(c.person, rnc) {
		return jsonResponse(http.StatusBadRequest, "El RNC del token no está autorizado para consultar este e-NCF.")
	}
	var own []*document
	for _, d := range c.s.state.Environments[c.amb].documentsOf(rnc, encf) {
		if d.RFCE && d.Facts.Code == code {
			own = append(own, d)
		}
	}
	type shape struct {
		RNC      string          `json:"rnc"`
		ENCF     string          `json:"encf"`
		Used     bool            `json:"secuenciaUtilizada"`
		Code     string          `json:"codigo"`
		State    string          `json:"estado"`
		Messages []numberMessage `json:"mensajes"`
	}
	d := decisiveDocument(own, c.now)
	if d == nil || c.hasFault("F12") {
		return jsonResponse(http.StatusOK, shape{rnc, encf, false, "0", stateName(codeNotFound), c.numberMessages(nil, true)})
	}
	c.markVerdictSeen(d)
	return jsonResponse(http.StatusOK, shape{rnc, encf, d.Verdict.Used, strconv.Itoa(d.Verdict.Code), stateName(d.Verdict.Code), c.numberMessages(c.messages(d), true)})
}

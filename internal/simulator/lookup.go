package simulator

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// A stringMessage has its code as text, as the answers for RFCEs do.
type stringMessage struct {
	Code string `json:"codigo"`
	Text string `json:"valor"`
}

// A numberMessage has its code as a number, after the text.
type numberMessage struct {
	Text string `json:"valor"`
	Code int    `json:"codigo"`
}

// messages are those of a verdict, or far too many.
func (c *call) messages(d *document) []Message {
	if !c.has("F19") {
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

// moment writes when a document was received.
func (c *call) moment(t time.Time) *string {
	layout := "1/2/2006 3:04:05 PM"
	if c.config.documented() {
		layout = "2006-01-02T15:04:05"
	}
	text := t.In(zone).Format(layout)
	return &text
}

// result is the look-up by trackId.
func (c *call) result() answer {
	c.asked()
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	id := c.query["trackid"]
	d := c.s.state.Environments[c.amb].Documents[id]
	if d == nil || d.RFCE {
		return c.resultOf(id, nil, codeNotFound)
	}
	interval := c.now.Sub(d.Polled)
	if !d.Polled.IsZero() && interval < c.config.pollInterval() && !c.s.clock.isFrozen() {
		c.s.violate(c, FastPolling, "asked again after "+interval.Round(time.Millisecond).String())
	}
	d.Polled = c.now
	d.Polls++
	code := d.at(c.now)
	switch {
	case c.has("F11"):
		code = codeInProcess
	case c.has("F12"):
		code = codeNotFound
	case c.has("F17") && code != codeNotFound:
		d.Verdict, d.Stuck, d.Due = *c.fault.Verdict, false, minTime(d.Due, c.now)
		code = d.Verdict.Code
	case c.has("F16") && code == codeAccepted && d.Polls > max(c.fault.After, 1):
		d.Verdict = Verdict{Code: codeRejected, Used: true, Messages: []Message{{90016, "El resultado ha cambiado."}}}
		code = codeRejected
	}
	if d.final(c.now) && code == d.Verdict.Code {
		c.told(d)
	}
	return c.resultOf(id, d, code)
}

// resultOf writes the answer of the look-up by trackId. Its key of the e-NCF and
// the type of its code depend on the wire.
func (c *call) resultOf(id string, d *document, code int) answer {
	type documented struct {
		TrackID  string          `json:"trackId"`
		Code     int             `json:"codigo"`
		State    string          `json:"estado"`
		RNC      *string         `json:"rnc"`
		ENCF     *string         `json:"eNCF"`
		Used     bool            `json:"secuenciaUtilizada"`
		Received *string         `json:"fechaRecepcion"`
		Messages []numberMessage `json:"mensajes"`
	}
	type observed struct {
		TrackID  string          `json:"trackId"`
		Code     string          `json:"codigo"`
		State    string          `json:"estado"`
		RNC      *string         `json:"rnc"`
		ENCF     *string         `json:"encf"`
		Used     bool            `json:"secuenciaUtilizada"`
		Received *string         `json:"fechaRecepcion"`
		Messages []numberMessage `json:"mensajes"`
	}
	v := documented{TrackID: id, Code: code, State: stateName(code), Messages: c.numberMessages(nil, false)}
	if d != nil && code != codeNotFound {
		rnc, encf := d.Facts.RNC, d.Facts.ENCF
		v.RNC, v.ENCF, v.Received = &rnc, &encf, c.moment(d.Received)
		if code != codeInProcess {
			v.Used, v.Messages = d.Verdict.Used, c.numberMessages(c.messages(d), true)
		}
		if c.has("F15") {
			switch c.fault.variant() {
			case "other-rnc":
				rnc = "101000000"
			case "other-encf":
				encf = encf[:len(encf)-1] + string('0'+(encf[len(encf)-1]-'0'+1)%10)
			case "contradiction":
				v.State = stateName(codeAccepted)
				if v.Code == codeAccepted {
					v.State = stateName(codeRejected)
				}
			case "unknown-code":
				v.Code, v.State = 7, "Desconocido"
			}
		}
	}
	if c.config.documented() {
		return reply(http.StatusOK, v)
	}
	return reply(http.StatusOK, observed{v.TrackID, strconv.Itoa(v.Code), v.State, v.RNC, v.ENCF, v.Used, v.Received, v.Messages})
}

// best is the document that stands for a number: the valid one, or the last whose
// verdict is known.
func best(docs []*document, now time.Time) *document {
	var last *document
	for _, d := range docs {
		switch code := d.at(now); {
		case code == codeNotFound || code == codeInProcess:
		case d.Verdict.valid():
			return d
		default:
			last = d
		}
	}
	return last
}

// state is the look-up by e-NCF. It tells a conditional acceptance of summaries
// alone.
func (c *call) state() answer {
	c.asked()
	rnc, encf := c.query["rncemisor"], strings.ToUpper(c.query["ncfelectronico"])
	if rnc == "" || encf == "" {
		return reply(http.StatusBadRequest, "El RNC emisor y el NCF electrónico son requeridos.")
	}
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	d := best(c.s.state.Environments[c.amb].documentsOf(rnc, encf), c.now)
	if !c.s.delegated(c.person, rnc) && (d == nil || !c.s.delegated(c.person, d.Facts.Buyer)) {
		return reply(http.StatusBadRequest, "El RNC del token no está autorizado para consultar este e-NCF.")
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
	if d == nil || c.has("F12") {
		return reply(http.StatusOK, v)
	}
	c.told(d)
	f := d.Facts
	v.Code, v.State = d.Verdict.Code, stateName(d.Verdict.Code)
	if v.Code == codeConditional && !d.RFCE {
		v.Code, v.State = codeAccepted, stateName(codeAccepted)
	} else if v.Code == codeConditional {
		v.State = "Aceptado condicional"
	}
	v.Total, v.ITBIS = jsonAmount(f.Total), jsonAmount(f.ITBIS)
	v.Issued, v.Signed, v.Buyer, v.Safety, v.Foreign = some(f.Issued), some(f.Signed), some(f.Buyer), some(f.Code), some(f.Foreign)
	if c.has("F15") {
		v.Total = "1.00"
	}
	return reply(http.StatusOK, v)
}

func some(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// jsonAmount is an amount as a number, which leading zeros are not.
func jsonAmount(s string) json.Number {
	if s = strings.TrimLeft(s, "0"); s == "" || s[0] == '.' {
		s = "0" + s
	}
	return json.Number(s)
}

// delegated tells whether a person acts for a taxpayer. The lock is held.
func (s *Simulator) delegated(person, rnc string) bool {
	t := s.state.Taxpayers[rnc]
	return t != nil && t.delegated(person, "")
}

type trackIDView struct {
	TrackID  *string `json:"trackId"`
	State    string  `json:"estado"`
	Received *string `json:"fechaRecepcion"`
}

// trackIDs is the look-up of the submissions of an e-NCF.
func (c *call) trackIDs() answer {
	c.asked()
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
		return reply(http.StatusBadRequest, refusal)
	}
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	if !c.s.delegated(c.person, rnc) {
		return reply(http.StatusBadRequest, "El RNC del token no está autorizado para consultar este e-NCF.")
	}
	var views []trackIDView
	for _, d := range c.s.state.Environments[c.amb].documentsOf(rnc, encf) {
		if code := d.at(c.now); !d.RFCE && code != codeNotFound && !c.has("F12") {
			if code != codeInProcess {
				c.told(d)
			}
			views = append(views, trackIDView{&d.ID, stateName(code), c.moment(d.Received)})
		}
	}
	switch {
	case len(views) > 0:
		return reply(http.StatusOK, views)
	case c.config.documented():
		return reply(http.StatusNotFound, trackIDView{State: "TrackId no encontrado."})
	}
	return reply(http.StatusOK, []trackIDView{{State: stateName(codeNotFound)}})
}

// summary is the look-up of an RFCE.
func (c *call) summary() answer {
	c.asked()
	rnc, encf, code := c.query["rnc_emisor"], strings.ToUpper(c.query["encf"]), c.query["cod_seguridad_ecf"]
	if rnc == "" || encf == "" || code == "" {
		return reply(http.StatusBadRequest, "El RNC, el ENCF y el código de seguridad son requeridos.")
	}
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	if !c.s.delegated(c.person, rnc) {
		return reply(http.StatusBadRequest, "El RNC del token no está autorizado para consultar este e-NCF.")
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
	d := best(own, c.now)
	if d == nil || c.has("F12") {
		return reply(http.StatusOK, shape{rnc, encf, false, "0", stateName(codeNotFound), c.numberMessages(nil, true)})
	}
	c.told(d)
	return reply(http.StatusOK, shape{rnc, encf, d.Verdict.Used, strconv.Itoa(d.Verdict.Code), stateName(d.Verdict.Code), c.numberMessages(c.messages(d), true)})
}

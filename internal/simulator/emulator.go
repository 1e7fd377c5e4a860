package simulator

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"

	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

// serveEmulator is DGII's emulator in testecf, in its role as a sender.
func (c *call) serveEmulator() response {
	operation, _ := strings.CutPrefix(c.rest, "api/emision/")
	switch {
	case c.r.Method == http.MethodPost && operation == "emisioncomprobantes":
		var in struct {
			RNC  string `json:"rnc"`
			Type string `json:"tipoEncf"`
			URL  string `json:"urlRecepcion"`
			Auth string `json:"urlAutenticacion"`
		}
		if json.NewDecoder(io.LimitReader(c.body, 64<<10)).Decode(&in) != nil {
			return errorBody("model-state", http.StatusBadRequest)
		}
		pushed, err := c.s.SendECF(c.r.Context(), emulatorRNC, Push{URL: in.URL, Auth: in.Auth, Buyer: in.RNC, Type: strings.TrimPrefix(in.Type, "E")})
		if err != nil {
			return jsonResponse(http.StatusBadRequest, err.Error())
		}
		c.s.mu.Lock()
		c.s.state.Acknowledged[in.RNC+pushed.ENCF] = pushed.Answer
		c.s.mu.Unlock()
		return response{status: http.StatusOK, contentType: kindXML, body: []byte(pushed.XML)}
	case c.r.Method == http.MethodPost && operation == "envioaprobacioncomercial":
		var in struct {
			URL   string `json:"urlAprobacionComercial"`
			Auth  string `json:"urlAutenticacion"`
			RNC   string `json:"rnc"`
			ENCF  string `json:"encf"`
			State string `json:"estadoAprobacion"`
		}
		if json.NewDecoder(io.LimitReader(c.body, 64<<10)).Decode(&in) != nil {
			return errorBody("model-state", http.StatusBadRequest)
		}
		pushed, err := c.s.SendACECF(c.r.Context(), emulatorRNC, Push{URL: in.URL, Auth: in.Auth, Issuer: in.RNC, ENCF: in.ENCF, Reject: in.State == "2"})
		if err != nil {
			return jsonResponse(http.StatusBadRequest, err.Error())
		}
		return response{status: http.StatusOK, contentType: kindXML, body: []byte(pushed.XML)}
	case c.r.Method == http.MethodGet && operation == "consultaacuserecibo":
		return c.serveAcknowledgement()
	}
	return response{status: http.StatusNotFound}
}

// serveAcknowledgement returns what the receiver of a pushed document answered.
func (c *call) serveAcknowledgement() response {
	rnc, encf := c.query["rnc"], strings.ToUpper(c.query["encf"])
	c.s.mu.Lock()
	text, known := c.s.state.Acknowledged[rnc+encf]
	c.s.mu.Unlock()
	state, messages := "No encontrado", []string{}
	if known {
		state = "No recibido"
		v, err := xmlsig.Verify([]byte(text), xmlsig.SmallLimits())
		switch {
		case err != nil:
			messages = append(messages, "El acuse no es válido.")
		case v.Root().Child("DetalleAcusedeRecibo").Child("Estado").Text() == "0":
			state = "Recibido"
		default:
			messages = append(messages, "Motivo "+v.Root().Child("DetalleAcusedeRecibo").Child("CodigoMotivoNoRecibido").Text())
		}
	}
	return jsonResponse(http.StatusOK, map[string]any{"rnc": rnc, "encf": encf, "estado": state, "mensajes": messages})
}

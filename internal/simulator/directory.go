package simulator

import (
	"net/http"
	"slices"
	"strings"
)

// An entry is one of the directory. Its addresses are bases, to which the paths
// of the receiver services are appended.
type entry struct {
	Name      string  `json:"nombre"`
	RNC       string  `json:"rnc"`
	Reception string  `json:"urlRecepcion"`
	Approval  string  `json:"urlAceptacion"`
	Auth      *string `json:"urlOpcional"`
}

// base is where the call came to.
func (c *call) base() string {
	scheme := "http://"
	if c.r.TLS != nil {
		scheme = "https://"
	}
	return scheme + c.r.Host
}

func (c *call) listing(t *Taxpayer) entry {
	own := c.base() + "/peer/" + t.RNC
	if t.RNC == emulatorRNC {
		own = c.base() + "/" + hostECF + "/" + TestECF + "/emisorreceptor"
	}
	e := entry{Name: t.Name, RNC: t.RNC, Reception: or(t.Receiver.Reception, own), Approval: or(t.Receiver.Approval, own)}
	if !t.Receiver.NoAuth {
		e.Auth = some(or(t.Receiver.Auth, own))
	}
	if c.has("F24") {
		wrong := map[string]string{"dead": "https://receptor.invalid", "private": "https://10.0.0.1", "http": "http://receptor.example"}[c.fault.variant()]
		if wrong != "" {
			e.Reception, e.Approval, e.Auth = wrong, wrong, some(wrong)
		}
	}
	return e
}

func or(s, unless string) string {
	if s == "" {
		return unless
	}
	return s
}

// directory lists the electronic receivers, or one. The emulator is in testecf
// alone.
func (c *call) directory() answer {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	entries := []entry{}
	rnc := c.query["rnc"]
	one := strings.HasSuffix(c.rest, "obtenerdirectorioporrnc")
	for _, t := range c.s.state.Taxpayers {
		if t.Receiver != nil && (t.RNC != emulatorRNC || c.amb == TestECF) && (!one || t.RNC == rnc) {
			entries = append(entries, c.listing(t))
		}
	}
	slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.RNC, b.RNC) })
	if c.has("F24") {
		switch c.fault.variant() {
		case "null":
			return answer{status: http.StatusOK, kind: kindJSON, body: []byte("null")}
		case "empty":
			return answer{status: http.StatusOK, kind: kindJSON}
		}
	}
	object := one && c.amb == ECF && !c.config.documented()
	if c.has("F24") && c.fault.variant() == "swap" {
		object = !object
	}
	switch {
	case !object:
		return reply(http.StatusOK, entries)
	case len(entries) == 0:
		return answer{status: http.StatusOK, kind: kindJSON, body: []byte("null")}
	}
	return reply(http.StatusOK, entries[0])
}

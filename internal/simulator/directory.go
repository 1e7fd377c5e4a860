package simulator

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
)

// A directoryEntry is an entry of the directory. Its addresses are base URLs: clients
// append the paths of the receiver services.
type directoryEntry struct {
	Name      string  `json:"nombre"`
	RNC       string  `json:"rnc"`
	Reception string  `json:"urlRecepcion"`
	Approval  string  `json:"urlAceptacion"`
	Auth      *string `json:"urlOpcional"`
}

// origin returns the scheme and host that the call used.
func (c *call) origin() string {
	scheme := "http://"
	if c.r.TLS != nil {
		scheme = "https://"
	}
	return scheme + c.r.Host
}

func (c *call) newDirectoryEntry(t *Taxpayer) directoryEntry {
	own := c.origin() + "/peer/" + t.RNC
	if t.RNC == emulatorRNC {
		own = c.origin() + "/" + hostECF + "/" + TestECF + "/emisorreceptor"
	}
	e := directoryEntry{Name: t.Name, RNC: t.RNC, Reception: cmp.Or(t.Receiver.Reception, own), Approval: cmp.Or(t.Receiver.Approval, own)}
	if !t.Receiver.NoAuth {
		e.Auth = stringPtr(cmp.Or(t.Receiver.Auth, own))
	}
	if c.hasFault("F24") {
		wrong := map[string]string{"dead": "https://receptor.invalid", "private": "https://10.0.0.1", "http": "http://receptor.example"}[c.fault.variant()]
		if wrong != "" {
			e.Reception, e.Approval, e.Auth = wrong, wrong, stringPtr(wrong)
		}
	}
	return e
}

// serveDirectory returns all electronic receivers, or one of them. The emulator is listed
// in testecf only.
func (c *call) serveDirectory() response {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	entries := []directoryEntry{}
	rnc := c.query["rnc"]
	one := strings.HasSuffix(c.rest, "obtenerdirectorioporrnc")
	for _, t := range c.s.state.Taxpayers {
		if t.Receiver != nil && (t.RNC != emulatorRNC || c.amb == TestECF) && (!one || t.RNC == rnc) {
			entries = append(entries, c.newDirectoryEntry(t))
		}
	}
	slices.SortFunc(entries, func(a, b directoryEntry) int { return strings.Compare(a.RNC, b.RNC) })
	if c.hasFault("F24") {
		switch c.fault.variant() {
		case "null":
			return response{status: http.StatusOK, contentType: kindJSON, body: []byte("null")}
		case "empty":
			return response{status: http.StatusOK, contentType: kindJSON}
		}
	}
	object := one && c.amb == ECF && !c.config.documented()
	if c.hasFault("F24") && c.fault.variant() == "swap" {
		object = !object
	}
	switch {
	case !object:
		return jsonResponse(http.StatusOK, entries)
	case len(entries) == 0:
		return response{status: http.StatusOK, contentType: kindJSON, body: []byte("null")}
	}
	return jsonResponse(http.StatusOK, entries[0])
}

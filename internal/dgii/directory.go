package dgii

import (
	"bytes"
	"context"
	"net/url"
	"strings"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/netguard"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

// emulatorRNC is the taxpayer that the authority plays in its test environment.
const emulatorRNC = "131880681"

// Receiver looks a taxpayer up in the authority's directory. False means that
// the taxpayer receives no electronic documents; ErrAbsent that there is no
// directory in the environment. Where the addresses lead is checked when they
// are called.
func (c *Client) Receiver(ctx context.Context, id *xmlsig.Identity, rnc string) (fiscal.Receiver, bool, error) {
	var found fiscal.Receiver
	var listed bool
	s := c.directory
	query := url.Values{"RNC": {rnc}}
	err := unavailable(c.do(ctx, id, call{service: s, query: query.Encode(), parse: func(rep *reply) error {
		if rep.torn == nil && rep.status >= 200 && rep.status < 300 && len(bytes.TrimSpace(rep.body)) == 0 {
			return nil // nothing is what the directory has
		}
		v, err := s.screen(rep)
		if err != nil {
			return err
		}
		var ok bool
		if found, listed, ok = readDirectory(rep.status, v, rnc); !ok {
			return s.fault(fiscal.ErrUnavailable, "HTTP %d: the entry of the directory is none", rep.status)
		}
		return nil
	}}))
	if err != nil {
		return fiscal.Receiver{}, false, err
	}
	if listed && c.hosts.Environment == "testecf" && digits(rnc) == emulatorRNC {
		// The directory names the authority's own authentication for it, which
		// the standard paths do not fit; the emulator has its own.
		found.Authentication = found.Reception
	}
	return found, listed, nil
}

// readDirectory finds a taxpayer in an answer: an object, a list, or nothing.
// An answer about others only is not one about the taxpayer.
func readDirectory(status int, v value, rnc string) (found fiscal.Receiver, listed, ok bool) {
	if status >= 400 {
		return found, false, saysNotFound(v)
	}
	entries := v.list
	switch v.kind {
	case kindNull:
		return found, false, true
	case kindArray:
		if len(entries) == 0 {
			return found, false, true
		}
	case kindObject:
		entries = []value{v}
	default:
		return found, false, saysNotFound(v)
	}
	for _, e := range entries {
		if e.kind == kindNull && len(entries) == 1 {
			return found, false, true
		}
		if !e.has("rnc") && !e.has("urlrecepcion") {
			return found, false, saysNotFound(e)
		}
		if of := e.of("rnc").scalar(); of != "" && digits(of) != digits(rnc) {
			continue
		}
		base := func(names ...string) string {
			return strings.TrimRight(clean(e.of(names...).scalar(), netguard.MaxURL+1), "/")
		}
		found = fiscal.Receiver{
			RNC:            rnc,
			Reception:      base("urlrecepcion"),
			Approval:       base("urlaceptacion", "urlaprobacion", "urlaprobacioncomercial"),
			Authentication: base("urlopcional", "urlautenticacion"),
		}
		if found.Reception == "" {
			return fiscal.Receiver{}, false, true // an entry without an address receives nothing
		}
		return found, true, true
	}
	return fiscal.Receiver{}, false, false
}

// saysNotFound tells whether an answer says in words that there is nothing.
func saysNotFound(v value) bool {
	if verdict, known := verdictOf(v.of("estado").scalar()); known && verdict == fiscal.VerdictNotFound {
		return true
	}
	for _, m := range v.messages() {
		if text := folded(m.Text); strings.Contains(text, "no encontrad") || strings.Contains(text, "no existe") {
			return true
		}
	}
	return false
}

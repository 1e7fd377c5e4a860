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

// emulatorRNC is the RNC of the authority's emulator in its test environment.
const emulatorRNC = "131880681"

// BuyerEndpoint looks a taxpayer up in the authority's directory. It returns false when
// the taxpayer receives no electronic documents. It fails with ErrUnavailable, or
// with ErrAbsent when the environment has no directory. It does not check the
// addresses: Deliver does.
func (c *Client) BuyerEndpoint(ctx context.Context, id *xmlsig.Identity, rnc string) (fiscal.BuyerEndpoint, bool, error) {
	var found fiscal.BuyerEndpoint
	var listed bool
	s := c.directory
	query := url.Values{"RNC": {rnc}}
	err := asUnavailable(c.do(ctx, id, s, call{query: query.Encode(), parse: func(res *response) error {
		if res.bodyErr == nil && res.status >= 200 && res.status < 300 && len(bytes.TrimSpace(res.body)) == 0 {
			s.absence.clear()
			s.absence.addAnswer()
			return nil // an empty response: the taxpayer is not listed
		}
		v, err := s.parseLookup(res)
		if err != nil {
			return err
		}
		var ok bool
		if found, listed, ok = readDirectory(res.status, v, rnc); !ok {
			return s.errorf(fiscal.ErrUnavailable, "HTTP %d: the response is not an entry of this taxpayer", res.status)
		}
		s.absence.addAnswer()
		return nil
	}}))
	if err != nil {
		return fiscal.BuyerEndpoint{}, false, err
	}
	if listed && c.hosts.Environment == "testecf" && digits(rnc) == emulatorRNC {
		// The directory lists the authority's own authentication service for the
		// emulator, which has other paths than a receiver's. The emulator offers
		// the standard paths at its reception address.
		found.Authentication = found.Reception
	}
	return found, listed, nil
}

// readDirectory finds the entry of a taxpayer in a response: an object, a list or
// nothing. ok is false when the response says nothing about the taxpayer, for
// example when it has entries of others only.
func readDirectory(status int, v jsonValue, rnc string) (found fiscal.BuyerEndpoint, listed, ok bool) {
	if status >= 400 {
		return found, false, saysNotFound(v)
	}
	entries := v.items
	switch v.kind {
	case kindNull:
		return found, false, true
	case kindArray:
		if len(entries) == 0 {
			return found, false, true
		}
	case kindObject:
		entries = []jsonValue{v}
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
		if of := e.member("rnc").scalar(); of != "" && digits(of) != digits(rnc) {
			continue
		}
		base := func(names ...string) string {
			return strings.TrimRight(clean(e.member(names...).scalar(), netguard.MaxURL+1), "/")
		}
		found = fiscal.BuyerEndpoint{
			RNC:            rnc,
			Reception:      base("urlrecepcion"),
			Approval:       base("urlaceptacion", "urlaprobacion", "urlaprobacioncomercial"),
			Authentication: base("urlopcional", "urlautenticacion"),
		}
		if found.Reception == "" {
			return fiscal.BuyerEndpoint{}, false, true // an entry without a reception address
		}
		return found, true, true
	}
	return fiscal.BuyerEndpoint{}, false, false
}

// saysNotFound reports whether a response says in words that nothing was found.
func saysNotFound(v jsonValue) bool {
	if verdict, known := parseVerdict(v.member("estado").scalar()); known && verdict == fiscal.VerdictNotFound {
		return true
	}
	for _, m := range v.messages() {
		if text := normalizeText(m.Text); strings.Contains(text, "no encontrad") || strings.Contains(text, "no existe") {
			return true
		}
	}
	return false
}

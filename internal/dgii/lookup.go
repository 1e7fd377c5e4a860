package dgii

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

// Result asks for the verdict of a track id. Whether the RNC and the e-NCF of
// the answer are those of the document is for the caller to compare. The error
// of this and of every other look-up is ErrUnavailable or ErrAbsent.
func (c *Client) Result(ctx context.Context, id *xmlsig.Identity, trackID string) (fiscal.Answer, error) {
	query := url.Values{"trackid": {trackID}}
	return c.lookUp(ctx, id, c.result, query, func(a fiscal.Answer) bool {
		return a.TrackID == "" || strings.EqualFold(a.TrackID, trackID)
	})
}

// State asks for the state of a document by its number. It cannot tell a
// conditional acceptance from a plain one, but for small consumer invoices.
func (c *Client) State(ctx context.Context, id *xmlsig.Identity, q fiscal.Query) (fiscal.Answer, error) {
	query := url.Values{
		"rncemisor": {q.RNC}, "ncfelectronico": {q.ENCF},
		"rnccomprador": {q.BuyerRNC}, "codigoseguridad": {q.SecurityCode},
	}
	return c.lookUp(ctx, id, c.state, query, func(a fiscal.Answer) bool { return about(a, q.RNC, q.ENCF) })
}

// SummaryState asks for the state of a small consumer invoice by its number and
// security code.
func (c *Client) SummaryState(ctx context.Context, id *xmlsig.Identity, q fiscal.Query) (fiscal.Answer, error) {
	query := url.Values{"RNC_Emisor": {q.RNC}, "ENCF": {q.ENCF}, "Cod_Seguridad_eCF": {q.SecurityCode}}
	return c.lookUp(ctx, id, c.summary, query, func(a fiscal.Answer) bool { return about(a, q.RNC, q.ENCF) })
}

// TrackIDs asks for all track ids that a number has. None is a well-formed "not
// found" of the service itself. A state that is given with a track id is its
// verdict.
func (c *Client) TrackIDs(ctx context.Context, id *xmlsig.Identity, q fiscal.Query) ([]fiscal.Answer, error) {
	query := url.Values{"rncemisor": {q.RNC}, "encf": {q.ENCF}}
	var list []fiscal.Answer
	s := c.trackIDs
	err := c.ask(ctx, id, s, query, func(rep *reply, v value) error {
		var ok bool
		if list, ok = readTrackIDs(rep, v, q); !ok {
			return s.fault(fiscal.ErrUnavailable, "HTTP %d: the list of track ids is none", rep.status)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}

// readTrackIDs reads the list, which may be one object. It is a list, or says
// that nothing was found, or is no answer at all.
func readTrackIDs(rep *reply, v value, q fiscal.Query) ([]fiscal.Answer, bool) {
	entries := v.list
	if v.kind == kindObject {
		entries = []value{v}
	} else if v.kind != kindArray {
		return nil, false
	}
	good := rep.status < 300
	raw := rep.answer()
	list := []fiscal.Answer{}
	for _, e := range entries {
		a := raw
		e.fill(&a)
		verdict, known := verdictOf(e.of("estado").scalar())
		switch {
		case e.kind != kindObject || !about(a, q.RNC, q.ENCF):
			return nil, false
		case a.TrackID == "" && known && verdict == fiscal.VerdictNotFound:
			continue
		case a.TrackID == "" || !good:
			return nil, false
		}
		if known {
			a.Known, a.Verdict = true, verdict
		}
		list = append(list, a)
	}
	return list, good || len(entries) > 0
}

// lookUp asks for the verdict of one document.
func (c *Client) lookUp(ctx context.Context, id *xmlsig.Identity, s *service, query url.Values, ours func(fiscal.Answer) bool) (fiscal.Answer, error) {
	var a fiscal.Answer
	err := c.ask(ctx, id, s, query, func(rep *reply, v value) error {
		a = rep.answer()
		v.fill(&a)
		verdict, err := v.verdict()
		switch {
		case err != nil:
			return s.fault(fiscal.ErrUnavailable, "HTTP %d: %v", rep.status, err)
		case !ours(a):
			return s.fault(fiscal.ErrUnavailable, "%v", errElsewhere)
		case rep.status >= 400 && verdict != fiscal.VerdictNotFound && verdict != fiscal.VerdictRejected:
			return s.fault(fiscal.ErrUnavailable, "HTTP %d: %v", rep.status, errContradiction)
		}
		a.Known, a.Verdict = true, verdict
		return nil
	})
	return a, err
}

// ask makes a look-up. What reaches parse is JSON, of a good status or of the
// authority's shape.
func (c *Client) ask(ctx context.Context, id *xmlsig.Identity, s *service, query url.Values, parse func(*reply, value) error) error {
	return unavailable(c.do(ctx, id, call{service: s, query: query.Encode(), parse: func(rep *reply) error {
		v, err := s.screen(rep)
		if err != nil {
			return err
		}
		return parse(rep, v)
	}}))
}

// screen keeps what is no answer of the service from being read as one.
func (s *service) screen(rep *reply) (value, error) {
	v, err := rep.read()
	switch status := rep.status; {
	case status == http.StatusNotFound && (err != nil || !isOurs(v)):
		return value{}, s.fault(fiscal.ErrAbsent, "HTTP 404")
	case status < 200 || status > 499 || status > 299 && status < 400:
		return value{}, s.sick(fiscal.ErrUnavailable, "HTTP %d", status)
	case err != nil:
		f := s.fault(fiscal.ErrUnavailable, "HTTP %d: %v", status, err)
		_, sentence := rep.sentence()
		f.sick = status < 300 || !sentence // a sentence is the service's own no
		return value{}, f
	case status >= 400 && !isOurs(v):
		return value{}, s.fault(fiscal.ErrUnavailable, "HTTP %d", status)
	}
	return v, nil
}

// isOurs tells whether JSON has the authority's shape, and not that of whatever
// stands before it.
func isOurs(v value) bool {
	if v.kind == kindArray && len(v.list) > 0 {
		v = v.list[0]
	}
	return v.of("estado", "codigo", "mensaje", "mensajes").kind != kindNone
}

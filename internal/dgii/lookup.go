package dgii

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

// Result looks up the verdict of a track id. The caller must compare the RNC and
// the e-NCF of the answer with the document. Like every look-up, it fails with
// ErrUnavailable, or with ErrAbsent when the environment has no such service.
func (c *Client) Result(ctx context.Context, id *xmlsig.Identity, trackID string) (fiscal.AuthorityAnswer, error) {
	query := url.Values{"trackid": {trackID}}
	return c.lookUpVerdict(ctx, id, c.result, query, func(a fiscal.AuthorityAnswer) bool {
		return a.TrackID == "" || strings.EqualFold(a.TrackID, trackID)
	})
}

// State looks up the state of a document by its number. The authority reports a
// conditional acceptance as a plain one here, except for small consumer invoices.
func (c *Client) State(ctx context.Context, id *xmlsig.Identity, q fiscal.Query) (fiscal.AuthorityAnswer, error) {
	return c.lookUpState(ctx, id, c.state, q)
}

func (c *Client) lookUpState(ctx context.Context, id *xmlsig.Identity, s *service, q fiscal.Query) (fiscal.AuthorityAnswer, error) {
	query := url.Values{
		"rncemisor": {q.RNC}, "ncfelectronico": {q.ENCF},
		"rnccomprador": {q.BuyerRNC}, "codigoseguridad": {q.SecurityCode},
	}
	return c.lookUpVerdict(ctx, id, s, query, func(a fiscal.AuthorityAnswer) bool { return matchesDocument(a, q.RNC, q.ENCF) })
}

// SummaryState looks up the state of a small consumer invoice by its number and
// security code.
func (c *Client) SummaryState(ctx context.Context, id *xmlsig.Identity, q fiscal.Query) (fiscal.AuthorityAnswer, error) {
	return c.lookUpSummary(ctx, id, c.rfceLookup, q)
}

func (c *Client) lookUpSummary(ctx context.Context, id *xmlsig.Identity, s *service, q fiscal.Query) (fiscal.AuthorityAnswer, error) {
	query := url.Values{"RNC_Emisor": {q.RNC}, "ENCF": {q.ENCF}, "Cod_Seguridad_eCF": {q.SecurityCode}}
	return c.lookUpVerdict(ctx, id, s, query, func(a fiscal.AuthorityAnswer) bool { return matchesDocument(a, q.RNC, q.ENCF) })
}

// TrackIDs looks up all track ids of a number. The list is empty only when the
// service itself says that there are none. If the service gives a state with a
// track id, the answer has it as its verdict.
func (c *Client) TrackIDs(ctx context.Context, id *xmlsig.Identity, q fiscal.Query) ([]fiscal.AuthorityAnswer, error) {
	query := url.Values{"rncemisor": {q.RNC}, "encf": {q.ENCF}}
	var list []fiscal.AuthorityAnswer
	s := c.trackIDs
	err := c.lookUp(ctx, id, s, query, func(res *response, v jsonValue) error {
		var ok bool
		if list, ok = readTrackIDs(res, v, q); !ok {
			return s.errorf(fiscal.ErrUnavailable, "HTTP %d: the response is not a list of track ids", res.status)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}

// readTrackIDs reads a list of track ids, or one object instead of a list. It
// returns false when the response is neither a list nor a clear "not found".
func readTrackIDs(res *response, v jsonValue, q fiscal.Query) ([]fiscal.AuthorityAnswer, bool) {
	entries := v.items
	if v.kind == kindObject {
		entries = []jsonValue{v}
	} else if v.kind != kindArray {
		return nil, false
	}
	good := res.status < 300
	raw := res.newAnswer()
	list := []fiscal.AuthorityAnswer{}
	for _, e := range entries {
		a := raw
		e.fill(&a)
		verdict, known := parseVerdict(e.member("estado").scalar())
		switch {
		case e.kind != kindObject || !matchesDocument(a, q.RNC, q.ENCF):
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

// lookUpVerdict looks up the verdict of one document. ours reports whether an
// answer is about that document.
func (c *Client) lookUpVerdict(ctx context.Context, id *xmlsig.Identity, s *service, query url.Values, ours func(fiscal.AuthorityAnswer) bool) (fiscal.AuthorityAnswer, error) {
	var a fiscal.AuthorityAnswer
	err := c.lookUp(ctx, id, s, query, func(res *response, v jsonValue) error {
		a = res.newAnswer()
		v.fill(&a)
		verdict, err := v.verdict()
		switch {
		case err != nil:
			return s.errorf(fiscal.ErrUnavailable, "HTTP %d: %v", res.status, err)
		case !ours(a):
			return s.errorf(fiscal.ErrUnavailable, "%v", errOtherDocument)
		case res.status >= 400 && verdict != fiscal.VerdictNotFound && verdict != fiscal.VerdictRejected:
			return s.errorf(fiscal.ErrUnavailable, "HTTP %d: %v", res.status, errContradiction)
		}
		a.Known, a.Verdict = true, verdict
		return nil
	})
	return a, err
}

// lookUp calls a look-up service. parse receives only JSON that comes from the
// service, see parseLookup.
func (c *Client) lookUp(ctx context.Context, id *xmlsig.Identity, s *service, query url.Values, parse func(*response, jsonValue) error) error {
	return asUnavailable(c.do(ctx, id, s, call{query: query.Encode(), parse: func(res *response) error {
		v, err := s.parseLookup(res)
		if err != nil {
			return err
		}
		if err := parse(res, v); err != nil {
			return err
		}
		s.absence.addAnswer()
		return nil
	}}))
}

// parseLookup reads the JSON of a look-up. It fails when the response does not
// come from the service, for example from a proxy, or when the service does not
// work.
func (s *service) parseLookup(res *response) (jsonValue, error) {
	v, err := res.parse()
	if res.status != http.StatusNotFound || err == nil && hasAuthorityShape(v) {
		s.absence.clear()
	}
	switch status := res.status; {
	case status == http.StatusNotFound && (err != nil || !hasAuthorityShape(v)):
		return jsonValue{}, s.unknownPage()
	case status < 200 || status > 499 || status > 299 && status < 400:
		return jsonValue{}, s.outagef(fiscal.ErrUnavailable, "HTTP %d", status)
	case err != nil:
		e := s.errorf(fiscal.ErrUnavailable, "HTTP %d: %v", status, err)
		_, sentence := res.plainText()
		e.outage = status < 300 || !sentence // the service refuses with a sentence when it works
		return jsonValue{}, e
	case status >= 400 && !hasAuthorityShape(v):
		e := s.errorf(fiscal.ErrUnavailable, "HTTP %d", status)
		e.outage = v.kind != kindString // the service refuses with a sentence when it works
		return jsonValue{}, e
	}
	return v, nil
}

// unknownPage returns the error of a look-up that got HTTP 404 without a body of
// the authority: ErrAbsent when the environment lacks the service, otherwise
// ErrUnavailable. It never means that the document was not found.
func (s *service) unknownPage() *callError {
	e := &callError{kind: fiscal.ErrUnavailable, service: s.name, text: "HTTP 404 with an unknown page"}
	switch {
	case s.absence.exists():
		e.outage = true
	case s.absence.addPage():
		e.kind, e.neutral = fiscal.ErrAbsent, true
	default:
		e.neutral = true
		e.text += ": more of them have to show that the environment lacks the service"
	}
	return e
}

// hasAuthorityShape reports whether JSON has the members that the authority uses.
// JSON of a proxy or of a web framework does not have them.
func hasAuthorityShape(v jsonValue) bool {
	if v.kind == kindArray && len(v.items) > 0 {
		v = v.items[0]
	}
	return v.member("estado", "codigo", "mensaje", "mensajes").kind != kindNone
}

package dgii

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

// Submit sends an e-CF. The answer is a track id, or the refusal of the document
// at the door as a verdict. The error is one of ErrNotReceived, ErrInconclusive
// and ErrNotDelegated; the Answer beside it has at most what the authority sent
// (Raw, At, Messages, and a TrackID where it contradicted itself).
func (c *Client) Submit(ctx context.Context, id *xmlsig.Identity, s fiscal.Shipment) (fiscal.Answer, error) {
	return c.submit(ctx, id, s, c.reception, readReception)
}

// SubmitSummary sends the summary (RFCE) of a small consumer invoice. The answer
// is the verdict itself; errors are those of Submit.
func (c *Client) SubmitSummary(ctx context.Context, id *xmlsig.Identity, s fiscal.Shipment) (fiscal.Answer, error) {
	return c.submit(ctx, id, s, c.rfce, readSummaryReception)
}

// A reader makes an answer of the JSON of a reply with a certain status, or
// says why it is none.
type reader func(status int, v value, a *fiscal.Answer) error

func (c *Client) submit(ctx context.Context, id *xmlsig.Identity, ship fiscal.Shipment, s *service, read reader) (fiscal.Answer, error) {
	if !isName(ship.RNC) || !isName(ship.ENCF) || len(ship.XML) == 0 {
		return fiscal.Answer{}, s.fault(fiscal.ErrNotReceived, "there is no document with an RNC and an e-NCF to send")
	}
	key := refusalKey{fingerprint(id), "taxpayer " + ship.RNC}
	if refusal, wait := c.refusals.stops(key); wait != nil {
		return fiscal.Answer{}, c.refused(s, refusal, wait)
	}
	var a fiscal.Answer
	err := c.do(ctx, id, call{service: s, ship: &ship, parse: func(rep *reply) error {
		a = rep.answer()
		err := readSubmission(rep, ship, read, &a)
		if errors.Is(err, errDelegation) {
			refusal := c.refusals.add(key, a.Messages[0].Text, true)
			c.log.Warn("the tax authority says that a signer is not delegated", "signer", id, "rnc", ship.RNC)
			return c.refused(s, refusal, &RetryAfter{refusal.Until.Sub(c.now())})
		}
		if err != nil {
			return s.sick(fiscal.ErrInconclusive, "HTTP %d: %v", rep.status, err)
		}
		return nil
	}})
	if err == nil {
		c.refusals.clear(key)
	}
	return a, err
}

// isName tells whether a text may stand in the name of a file.
func isName(s string) bool {
	return s != "" && len(s) <= 20 && !strings.ContainsFunc(s, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'A' || r > 'Z')
	})
}

var (
	errDelegation = errors.New("the signer is not delegated")
	errServer     = errors.New("the server does not work")
	errNoReason   = errors.New("there is no reason of the tax authority in the answer")
	errElsewhere  = errors.New("the answer is of another document")
)

// readSubmission makes an answer of a reply. Every error but errDelegation
// leaves the outcome unknown.
func readSubmission(rep *reply, ship fiscal.Shipment, read reader, a *fiscal.Answer) error {
	refused := rep.status >= 400 && rep.status < 500
	if !refused && (rep.status < 200 || rep.status > 299) {
		return errServer
	}
	v, err := rep.read()
	if err != nil {
		if s, ok := rep.sentence(); ok && refused {
			a.Messages = value{kind: kindString, text: s}.messages()
		}
	} else {
		v.fill(a)
	}
	if refused && aboutDelegation(a.Messages) {
		return errDelegation
	}
	if err != nil {
		return err
	}
	if v.kind != kindObject {
		return errNoReason
	}
	if !about(*a, ship.RNC, ship.ENCF) {
		return errElsewhere
	}
	return read(rep.status, v, a)
}

// readReception reads the answer to an e-CF (services of the DGII, reception).
func readReception(status int, v value, a *fiscal.Answer) error {
	if status >= 400 {
		return readRefusal(status, v, a)
	}
	failed := v.of("error")
	if a.TrackID != "" {
		// A message beside a track id is a remark; an error contradicts it.
		if len(failed.messages()) > 0 {
			return fmt.Errorf("a track id and an error: %w", errContradiction)
		}
		return nil
	}
	if verdict, err := v.verdict(); err == nil && verdict == fiscal.VerdictRejected {
		return reject(a)
	}
	// "trackId null, error = reason" is how the authority says that it has not
	// taken a document, whatever the status.
	if v.has("trackid") && len(failed.messages()) > 0 && !v.has("codigo") {
		return reject(a)
	}
	return errors.New("there is neither a track id nor a reason in the answer")
}

// readSummaryReception reads the answer to a summary: the verdict.
func readSummaryReception(status int, v value, a *fiscal.Answer) error {
	if status >= 400 {
		return readRefusal(status, v, a)
	}
	verdict, err := v.verdict()
	if err != nil {
		return err
	}
	switch verdict {
	case fiscal.VerdictAccepted, fiscal.VerdictRejected, fiscal.VerdictConditional:
		a.Known, a.Verdict = true, verdict
		return nil
	default:
		return fmt.Errorf("%w: %d to a summary", errNoVerdict, verdict)
	}
}

func reject(a *fiscal.Answer) error {
	a.Known, a.Verdict, a.TrackID = true, fiscal.VerdictRejected, ""
	return nil
}

// readRefusal reads a 4xx. It is conclusive only with a reason that is the
// authority's: a proxy must never burn a fiscal number.
func readRefusal(status int, v value, a *fiscal.Answer) error {
	if status == http.StatusProxyAuthRequired || status == http.StatusRequestTimeout || a.TrackID != "" {
		return errNoReason
	}
	verdict, err := v.verdict()
	switch {
	case err == nil && verdict == fiscal.VerdictRejected:
		return reject(a)
	case err == nil, errors.Is(err, errContradiction):
		return errContradiction // taken and refused at once
	case v.of("estado").scalar() != "":
		return errUnknownCode
	}
	if !hasReason(status, v) {
		return errNoReason
	}
	if code := v.of("codigo").scalar(); strings.Trim(code, "0") != "" {
		// The code stands beside the text, not in it.
		switch {
		case len(a.Messages) == 0:
			a.Messages = messageOf(code, "")
		case a.Messages[0].Code == "":
			a.Messages[0].Code = clean(code, codeLimit)
		}
	}
	if len(a.Messages) == 0 {
		return errNoReason
	}
	return reject(a)
}

func messageOf(code, text string) []fiscal.Message {
	var list messageList
	list.add(code, text)
	return list
}

// hasReason tells whether an object is the authority's way to give a reason.
// "error" alone is everybody's way: it counts only where the request itself was
// judged, and not beside the members of a framework's problem object.
func hasReason(status int, v value) bool {
	if v.of("mensaje").kind != kindNone || v.of("mensajes").kind != kindNone || v.of("codigo").kind != kindNone {
		return true
	}
	if v.of("error").kind == kindNone {
		return false
	}
	if v.has("trackid") {
		return true
	}
	switch status {
	case http.StatusBadRequest, http.StatusConflict, http.StatusUnprocessableEntity:
	default:
		return false
	}
	for _, name := range []string{"status", "title", "traceid", "timestamp", "path", "statuscode"} {
		if v.has(name) {
			return false
		}
	}
	return true
}

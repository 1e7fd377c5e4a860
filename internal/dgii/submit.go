package dgii

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

// checkShipment returns an error when a document cannot be sent.
func checkShipment(s *service, shipment fiscal.Shipment) error {
	if !isFileNamePart(shipment.RNC) || !isFileNamePart(shipment.ENCF) || len(shipment.XML) == 0 {
		return s.errorf(fiscal.ErrNotReceived, "the document has no valid RNC, e-NCF or content")
	}
	return nil
}

// An answerReader reads the JSON of a response with the given status into a. It
// returns an error when the response is not conclusive.
type answerReader func(status int, v jsonValue, a *fiscal.AuthorityAnswer) error

// isFileNamePart reports whether a text may be a part of a file name: digits and
// capital letters only.
func isFileNamePart(s string) bool {
	return s != "" && len(s) <= 20 && !strings.ContainsFunc(s, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'A' || r > 'Z')
	})
}

var (
	errDelegation    = errors.New("the signer is not delegated")
	errServerStatus  = errors.New("the status says nothing about the document")
	errNoReason      = errors.New("the response has no reason of the tax authority")
	errOtherDocument = errors.New("the response is about another document")
)

// readSubmission reads a response into an answer. After every error except
// errDelegation the outcome is unknown.
func readSubmission(res *response, shipment fiscal.Shipment, read answerReader, a *fiscal.AuthorityAnswer) error {
	refused := res.status >= 400 && res.status < 500
	if !refused && (res.status < 200 || res.status > 299) {
		return errServerStatus
	}
	v, err := res.parse()
	if err != nil {
		if s, ok := res.plainText(); ok && refused {
			a.Messages = jsonValue{kind: kindString, text: s}.messages()
		}
	} else {
		v.fill(a)
	}
	if refused && saysNotDelegated(a.Messages) {
		return errDelegation
	}
	if err != nil {
		return err
	}
	if v.kind != kindObject {
		return errNoReason
	}
	if !matchesDocument(*a, shipment.RNC, shipment.ENCF) {
		return errOtherDocument
	}
	if err := read(res.status, v, a); err != nil {
		return err
	}
	if a.Verdict == fiscal.VerdictRejected && saysNotDelegated(a.Messages) { // a refusal with another status
		a.Known, a.Verdict = false, 0
		return errDelegation
	}
	return nil
}

// readReception reads the response to an e-CF.
func readReception(status int, v jsonValue, a *fiscal.AuthorityAnswer) error {
	if status >= 400 {
		return readRefusal(status, v, a)
	}
	failed := v.member("error")
	if a.TrackID != "" {
		// A message with a track id is a remark; an error contradicts the track id.
		if len(failed.messages()) > 0 {
			return fmt.Errorf("a track id and an error: %w", errContradiction)
		}
		return nil
	}
	if verdict, err := v.verdict(); err == nil && verdict == fiscal.VerdictRejected {
		return reject(a)
	}
	// The authority refuses a document with a null trackId and a reason in error,
	// whatever the status.
	if v.has("trackid") && len(failed.messages()) > 0 && !v.has("codigo") {
		return reject(a)
	}
	return errors.New("the response has neither a track id nor a reason")
}

// readSummaryReception reads the response to a summary, which has the verdict.
func readSummaryReception(status int, v jsonValue, a *fiscal.AuthorityAnswer) error {
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
		return fmt.Errorf("%w: the verdict of a summary cannot be %d", errNoVerdict, verdict)
	}
}

func reject(a *fiscal.AuthorityAnswer) error {
	a.Known, a.Verdict, a.TrackID = true, fiscal.VerdictRejected, ""
	return nil
}

// readRefusal reads a response with a 4xx status. It is conclusive only when the
// reason comes from the authority: the response of a proxy must never cost a
// fiscal number.
func readRefusal(status int, v jsonValue, a *fiscal.AuthorityAnswer) error {
	if status == http.StatusProxyAuthRequired || status == http.StatusRequestTimeout || a.TrackID != "" {
		return errNoReason
	}
	verdict, err := v.verdict()
	switch {
	case err == nil && verdict == fiscal.VerdictRejected:
		return reject(a)
	case err == nil, errors.Is(err, errContradiction):
		return errContradiction // a 4xx status with a verdict other than rejected
	case v.member("estado").scalar() != "":
		return errUnknownCode
	}
	if !hasAuthorityReason(status, v) {
		return errNoReason
	}
	if code := v.member("codigo").scalar(); strings.Trim(code, "0") != "" {
		// The code is a member next to the text, not part of the message.
		switch {
		case len(a.Messages) == 0:
			a.Messages = newMessages(code, "")
		case a.Messages[0].Code == "":
			a.Messages[0].Code = clean(code, maxMessageCode)
		}
	}
	if len(a.Messages) == 0 {
		return errNoReason
	}
	return reject(a)
}

func newMessages(code, text string) []fiscal.Message {
	var list messageList
	list.add(code, text)
	return list
}

// hasAuthorityReason reports whether an object gives a reason the way the authority
// does. Proxies and frameworks use a member "error" too. So "error" alone counts
// only with a status about the request's content, and not together with members of
// a framework's error object.
func hasAuthorityReason(status int, v jsonValue) bool {
	if v.member("mensaje").kind != kindNone || v.member("mensajes").kind != kindNone || v.member("codigo").kind != kindNone {
		return true
	}
	if v.member("error").kind == kindNone {
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

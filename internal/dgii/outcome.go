package dgii

import (
	"errors"
	"net"
	"net/http"
	"time"
)

// An Exchange is one finished HTTP exchange, for metrics.
type Exchange struct {
	Service  string // auth, reception, rfce, result, state, trackids, consultarfce, directory; peer for buyers' receivers
	Outcome  Outcome
	Status   int           // the HTTP status; 0 without a response
	Duration time.Duration // without the wait for a slot
}

// An Outcome is the class of a finished exchange.
type Outcome string

// The classes.
const (
	OutcomeOK          Outcome = "ok"           // a complete response, 2xx
	OutcomeRefused     Outcome = "refused"      // a complete response, 3xx or 4xx
	OutcomeRateLimited Outcome = "rate_limited" // 429
	OutcomeServerError Outcome = "server_error" // 5xx
	OutcomeNotSent     Outcome = "not_sent"     // no connection, or no byte of the document was sent
	OutcomeLost        Outcome = "lost"         // sent, but no response or only a part of one
)

// outcomeOf returns the class of an exchange with a response or an error. notSent
// says that no byte of a document can have been sent.
func outcomeOf(res *response, err error, notSent bool) Outcome {
	dial, ok := errors.AsType[*net.OpError](err)
	switch {
	case err != nil && (notSent || ok && dial.Op == "dial"):
		return OutcomeNotSent
	case err != nil || res.bodyErr != nil:
		return OutcomeLost
	case res.status == http.StatusTooManyRequests:
		return OutcomeRateLimited
	case res.status >= 500:
		return OutcomeServerError
	case res.status >= 300:
		return OutcomeRefused
	}
	return OutcomeOK
}

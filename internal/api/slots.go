package api

import (
	"errors"
	"net/http"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/capacity"
	"github.com/fiscalhub/fiscalhub/internal/lang"
)

// holder returns on whose account the request holds something.
func (x *exchange) holder() capacity.Holder {
	return capacity.Holder{Address: x.address, Credential: x.credential.Prefix, Taxpayer: x.credential.TaxpayerID}
}

// takeSlot takes a slot for a request that has passed its checks and that is
// complete in memory.
func (a *API) takeSlot(x *exchange) (err error) {
	x.held.Slot, err = a.o.Capacity.TakeSlot(x.r.Context(), x.holder())
	return a.refusal(x, err)
}

// readBody reads the body of a request into memory and takes a slot afterwards. It
// gives a slot that the request holds back first.
func (a *API) readBody(x *exchange, limit int64) ([]byte, error) {
	x.held.Release()
	var err error
	x.held.Body, err = a.o.Capacity.ReadBody(x.w, x.r, x.holder(), limit)
	x.bodyRead = err == nil
	switch {
	case errors.Is(err, capacity.ErrTooLarge):
		return nil, tooLarge(limit)
	case errors.Is(err, capacity.ErrTooSlow):
		return nil, tooSlow()
	case errors.Is(err, capacity.ErrIncomplete):
		return nil, badRequest(lang.Messagef(
			"the body is incomplete: reading it failed before its end", "el cuerpo está incompleto: la lectura falló antes de su final"))
	case err != nil:
		return nil, a.refusal(x, err)
	}
	x.held.Large, err = a.o.Capacity.TakeLargeSlot(x.r.Context(), x.holder(), len(x.held.Body.Bytes))
	if err != nil {
		return nil, a.refusal(x, err)
	}
	if err := a.stillAllowed(x); err != nil {
		return nil, err
	}
	return x.held.Body.Bytes, a.takeSlot(x)
}

// refusal turns an error of package capacity into an answer. A tenant that holds its
// own share gets 429; when the service as a whole is busy the answer is 503.
func (a *API) refusal(x *exchange, err error) error {
	var full *capacity.FullError
	if !errors.As(err, &full) {
		return err
	}
	a.metrics.shed.WithLabelValues(string(full.Bound)).Inc()
	x.held.Release()
	if full.Bound != capacity.Credential && full.Bound != capacity.Taxpayer {
		return shed(unavailable(lang.Messagef(
			"the service is overloaded; send the same request again after Retry-After seconds",
			"el servicio está sobrecargado; envíe la misma solicitud otra vez después de los segundos de Retry-After")))
	}
	a.rateLimiter.giveBack(x.credential.Prefix, &x.window)
	message := lang.Messagef(
		"too many requests of this credential are under way; try again after Retry-After seconds",
		"demasiadas solicitudes de esta credencial están en curso; intente otra vez después de los segundos de Retry-After")
	if full.Bound == capacity.Taxpayer {
		message = lang.Messagef(
			"too many requests of this taxpayer are under way; try again after Retry-After seconds",
			"demasiadas solicitudes de este contribuyente están en curso; intente otra vez después de los segundos de Retry-After")
	}
	return shed(rateLimited(1, message))
}

// lingerTime is the time between a refusal over HTTP/2 and the end of its stream.
const lingerTime = 200 * time.Millisecond

// linger sends the answer to a client of HTTP/2 whose body was not read to its end, and
// then waits until the client closes the stream, but not for long. When a handler returns
// before the end of the body, net/http resets the stream. A client that gets the reset
// together with the answer may drop the answer; curl does. The window of the stream
// bounds what the client can send meanwhile. HTTP/1 needs no help: net/http reads on
// before it closes a connection.
func (x *exchange) linger() {
	if x.r.ProtoMajor < 2 || x.r.ContentLength == 0 || x.bodyRead {
		return
	}
	if http.NewResponseController(x.w).Flush() != nil {
		return
	}
	late := time.NewTimer(lingerTime)
	defer late.Stop()
	select {
	case <-x.r.Context().Done():
	case <-late.C:
	}
}

// shared reports whether the connection of a request carries requests of other
// clients, too.
func shared(r *http.Request) bool {
	_, forwarded := r.Header["X-Forwarded-For"]
	return forwarded || r.ProtoMajor > 1
}

// How many refusals per second the service sends at most, when it has no capacity and
// to clients whose address has used up its window. The latter must wait longer anyway.
const (
	refusalsPerSecond         = 1000
	exceededRefusalsPerSecond = 250
)

// delayNextRead waits before the next request of a connection is read, after a
// refusal. A refusal costs nearly as much as a request: clients that ignore
// Retry-After would take the time of the requests that are served. The delay grows
// with the number of such connections. A client that waits for Retry-After does not
// notice it. A connection of a proxy is not delayed, because it carries requests of
// other clients, too.
func (a *API) delayNextRead(x *exchange) {
	delayed := a.delayed.Add(1)
	defer a.delayed.Add(-1)
	if shared(x.r) || http.NewResponseController(x.w).Flush() != nil || a.draining.Load() {
		return
	}
	rate := int64(refusalsPerSecond)
	if x.exceeded {
		rate = exceededRefusalsPerSecond
	}
	timer := time.NewTimer(readDelay(delayed, rate))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-x.r.Context().Done():
	}
}

// readDelay spreads the refusals of delayed connections over time: at most
// perSecond, and no connection waits longer than a second.
func readDelay(delayed, perSecond int64) time.Duration {
	return min(time.Duration(delayed)*time.Second/time.Duration(perSecond), time.Second)
}

package console

import (
	"errors"
	"net/http"

	"github.com/fiscalhub/fiscalhub/internal/people"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// pageError is an error that a person sees as a page. The texts of the page are
// "error.KEY.title", "error.KEY.text" and "error.KEY.next".
type pageError struct {
	status int
	key    string
}

func (e *pageError) Error() string { return "console: " + e.key }

var (
	errBadRequest  = &pageError{http.StatusBadRequest, "bad_request"}
	errForbidden   = &pageError{http.StatusForbidden, "forbidden"}
	errCrossSite   = &pageError{http.StatusForbidden, "cross_site"}
	errNotFound    = &pageError{http.StatusNotFound, "not_found"}
	errLink        = &pageError{http.StatusNotFound, "link"}
	errMethod      = &pageError{http.StatusMethodNotAllowed, "method"}
	errLimited     = &pageError{http.StatusTooManyRequests, "limited"}
	errCrowded     = &pageError{http.StatusServiceUnavailable, "crowded"}
	errBusy        = &pageError{http.StatusServiceUnavailable, "busy"}
	errUnavailable = &pageError{http.StatusServiceUnavailable, "unavailable"}
	errInternal    = &pageError{http.StatusInternalServerError, "internal"}
)

// redirectError is the address of the page that the browser must open instead.
type redirectError string

func (redirectError) Error() string { return "console: another page comes first" }

// errorView is the data of the page of an error.
type errorView struct {
	Status    int
	Key       string
	RequestID string
}

// answerError answers a request with the page of an error.
func (c *Console) answerError(x *request, err error) {
	var instead redirectError
	if errors.As(err, &instead) {
		_ = x.redirect(string(instead)) // it never fails
		return
	}
	shown := x.pageErrorOf(err)
	if shown == errInternal || shown == errUnavailable {
		// The log has the address of the table and not of the request, which may
		// contain the link of a person.
		address := "unknown"
		if x.page != nil {
			address = x.page.address
		}
		c.o.Log.Error("The console cannot answer a request. The person sees a page with the request id.",
			"request_id", x.id, "method", x.Method, "page", address, "error", err.Error())
	}
	switch shown {
	case errBusy, errCrowded, errUnavailable:
		x.w.Header().Set("Retry-After", "5")
	case errLimited:
		// A page would cost as much as the refused page.
		x.w.Header().Set("Retry-After", "60") // the length of the window
		http.Error(x.w, x.text("error.limited.text")+" "+x.text("error.limited.next"), shown.status)
		return
	}
	x.w.Header().Del("ETag")
	view := errorView{Status: shown.status, Key: shown.key, RequestID: x.id}
	if err := x.renderStatus(shown.status, "error", x.text("error."+shown.key+".title"), view); err != nil {
		c.o.Log.Error("The console cannot render the page of an error.", "request_id", x.id, "error", err.Error())
		http.Error(x.w, http.StatusText(shown.status), shown.status)
	}
}

// pageErrorOf returns the page of an error.
func (x *request) pageErrorOf(err error) *pageError {
	var shown *pageError
	switch {
	case errors.As(err, &shown):
		return shown
	case errors.Is(err, store.ErrNotFound):
		return errNotFound
	case errors.Is(err, people.ErrLink):
		return errLink
	case errors.Is(err, people.ErrBusy):
		return errBusy
	case errors.Is(err, store.ErrUnavailable):
		return errUnavailable
	}
	return errInternal
}

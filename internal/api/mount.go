package api

import (
	"context"
	"net/http"

	"github.com/fiscalhub/fiscalhub/internal/capacity"
)

// Mount returns a handler that serves the paths for which serves returns true
// with other, and all other paths with next. The path is decoded. Like the API it refuses a request
// that has both Content-Length and Transfer-Encoding.
func Mount(next http.Handler, serves func(path string) bool, other http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !serves(r.URL.Path):
			next.ServeHTTP(w, r)
		case capacity.HasLengthAndChunks(r):
			w.WriteHeader(http.StatusBadRequest)
		default:
			other.ServeHTTP(w, r)
		}
	})
}

// AdmitCaller counts a request of a caller who is no client of the API but has proven its
// identity, like that of a credential, and reports whether it is within the limit.
func (a *API) AdmitCaller(ctx context.Context, caller string) bool {
	_, ok := a.rateLimiter.countCredential(ctx, "caller "+caller, a.o.RateLimit)
	return ok
}

// Admit counts a request without a credential by the address of its client, and
// reports whether it is within the limit.
func (a *API) Admit(r *http.Request) bool { return a.admit(r, "other ") }

// AdmitVisitor is Admit for a request without a session to the console. Visitors have a
// window of their own.
func (a *API) AdmitVisitor(r *http.Request) bool { return a.admit(r, "visitor ") }

func (a *API) admit(r *http.Request, window string) bool {
	_, ok := a.rateLimiter.countAddress(r.Context(), window+a.o.Clients.Address(r))
	return ok
}

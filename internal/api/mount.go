package api

import "net/http"

// Mount serves some paths by another handler, on the listener of the API and
// with what it asks of every connection.
func Mount(next http.Handler, serves func(path string) bool, other http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !serves(r.URL.Path):
			next.ServeHTTP(w, r)
			return
		case ambiguous(r):
			w.Header().Set("Connection", "close")
			w.WriteHeader(http.StatusBadRequest)
		default:
			other.ServeHTTP(w, r)
		}
		nextHead(r)
	})
}

// Admit counts a request of somebody who has no credential, by the address that
// it comes from, and tells whether it may be served.
func (a *API) Admit(r *http.Request) bool {
	_, ok := a.windows.fail(r.Context(), "other "+clientNetwork(r, a.Proxies))
	return ok
}

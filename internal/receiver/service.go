package receiver

import (
	"net/http"
	"net/url"
	"strings"
)

// A service is one of the four.
type service int

const (
	none service = iota
	seedService
	tokenService
	reception
	approval
)

// String names the service for the log.
func (s service) String() string {
	return [...]string{"none", "seed", "token", "reception", "approval"}[s]
}

func (s service) allow() string {
	if s == seedService {
		return "GET, HEAD"
	}
	return http.MethodPost
}

func (s service) takes(method string) bool {
	if s == seedService {
		return method == http.MethodGet || method == http.MethodHead
	}
	return method == http.MethodPost
}

// Serves tells whether a path, escaped or not, is one of the services. A taxpayer
// registers a base, to which others append the standard paths. Proxies may leave
// any of it before them, so that the end of a path alone counts, in whatever
// letter case.
func Serves(path string) bool { return serviceOf(path) != none }

func serviceOf(path string) service {
	if plain, err := url.PathUnescape(path); err == nil {
		path = plain
	}
	path = strings.ToLower(path)
	at := strings.LastIndex(path, "/fe/")
	if at < 0 {
		return none
	}
	switch path[at:] {
	case "/fe/autenticacion/api/semilla":
		return seedService
	case "/fe/autenticacion/api/validacioncertificado":
		return tokenService
	case "/fe/recepcion/api/ecf", "/fe/recepción/api/ecf": // one table of the authority has the accent
		return reception
	case "/fe/aprobacioncomercial/api/ecf":
		return approval
	}
	return none
}

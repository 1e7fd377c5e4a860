package receiver

import (
	"net/http"
	"strings"
)

// A service is one of the four services of a receiver.
type service int

const (
	none service = iota
	seedService
	tokenService
	reception
	approval
)

// String returns the name of the service for the log.
func (s service) String() string {
	return [...]string{"none", "seed", "token", "reception", "approval"}[s]
}

// allow returns the header Allow of the service.
func (s service) allow() string {
	if s == seedService {
		return "GET, HEAD"
	}
	return http.MethodPost
}

// accepts reports whether the service accepts a method.
func (s service) accepts(method string) bool {
	if s == seedService {
		return method == http.MethodGet || method == http.MethodHead
	}
	return method == http.MethodPost
}

// Serves reports whether a decoded path belongs to one of the services. A
// taxpayer registers a base URL, and others append the standard paths to it. Proxies may
// keep any part of the base, so only the end of the path counts. Upper and lower case
// are equal.
func Serves(path string) bool { return serviceOf(path) != none }

// serviceOf returns the service of a path, or none.
func serviceOf(path string) service {
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
	case "/fe/recepcion/api/ecf", "/fe/recepción/api/ecf": // one document of the authority has the accent
		return reception
	case "/fe/aprobacioncomercial/api/ecf":
		return approval
	}
	return none
}

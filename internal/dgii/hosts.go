package dgii

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// Hosts are the authority's base URLs, without a slash at the end, and the
// environment as it appears in the paths.
type Hosts struct {
	ECF, FC     string
	Environment string // testecf, certecf or ecf
}

// ProductionHosts returns the authority's own hosts, which serve all of its
// environments.
func ProductionHosts(environment string) Hosts {
	return Hosts{ECF: "https://ecf.dgii.gov.do", FC: "https://fc.dgii.gov.do", Environment: environment}
}

// SimulatorHosts returns the hosts of a simulator, which has both under one base
// URL. It fails when an address or the environment is not valid.
func SimulatorHosts(base, environment string) (Hosts, error) {
	base = strings.TrimRight(base, "/")
	return Hosts{ECF: base + "/ecf-host", FC: base + "/fc-host", Environment: environment}.check()
}

// The services that some environments lack.
const (
	stateService     = "state"
	trackIDsService  = "trackids"
	directoryService = "directory"
)

// isProduction reports whether documents have fiscal validity. All services exist
// in production.
func (h Hosts) isProduction() bool { return h.Environment == "ecf" }

// lacks reports whether the authority documents that the environment lacks a
// service.
func (h Hosts) lacks(service string) bool {
	if h.Environment != "certecf" {
		return false
	}
	switch service {
	case stateService, trackIDsService, directoryService:
		return true
	}
	return false
}

func (h Hosts) check() (Hosts, error) {
	switch h.Environment {
	case "testecf", "certecf", "ecf":
	default:
		return Hosts{}, fmt.Errorf("dgii: environment %q must be testecf, certecf or ecf", h.Environment)
	}
	for _, base := range []string{h.ECF, h.FC} {
		if _, err := originOf(base); err != nil {
			return Hosts{}, err
		}
		if strings.HasSuffix(base, "/") {
			return Hosts{}, fmt.Errorf("dgii: the address %q must not end in a slash", base)
		}
	}
	return h, nil
}

// originOf returns the scheme, host and port of an address. It always writes the
// port, so that two spellings of one origin are equal. Its errors do not quote the
// address, which may have a password.
func originOf(address string) (string, error) {
	u, err := url.Parse(address)
	if err != nil {
		return "", errors.New("dgii: the address is not a URL")
	}
	port := u.Port()
	switch {
	case u.Scheme == "https" && port == "":
		port = "443"
	case u.Scheme == "http" && port == "":
		port = "80"
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return "", errors.New("dgii: the address must be an http or https URL without user, query and fragment")
	}
	host := strings.ToLower(u.Hostname())
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return u.Scheme + "://" + host + ":" + port, nil
}

package simulator

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// A Service is one of the simulated services.
type Service string

// The services, by host.
const (
	Seed        Service = "seed"
	Token       Service = "token"
	Reception   Service = "reception"
	Result      Service = "result"
	StateLookup Service = "state"
	TrackIDs    Service = "trackids"
	Directory   Service = "directory"
	Approval    Service = "approval"
	Annulment   Service = "annulment"
	Stamp       Service = "stamp"
	Emulator    Service = "emulator"

	RFCE       Service = "rfce"
	RFCELookup Service = "rfce_lookup"
	StampFC    Service = "stamp_fc"

	Status Service = "status"

	PeerSeed      Service = "peer_seed"
	PeerToken     Service = "peer_token"
	PeerReception Service = "peer_reception"
	PeerApproval  Service = "peer_approval"
)

func (s Service) known() bool {
	return slices.Contains([]Service{
		Seed, Token, Reception, Result, StateLookup, TrackIDs, Directory, Approval, Annulment, Stamp, Emulator,
		RFCE, RFCELookup, StampFC, Status, PeerSeed, PeerToken, PeerReception, PeerApproval,
	}, s)
}

// needsToken reports whether the service requires a token of the authority.
func (s Service) needsToken() bool {
	switch s {
	case Reception, Result, StateLookup, TrackIDs, Directory, Approval, Annulment, RFCE, RFCELookup:
		return true
	default:
		return false
	}
}

// absent reports whether certecf lacks the service.
func (s Service) absent() bool {
	return s == StateLookup || s == TrackIDs || s == Annulment || s == Directory
}

func (s Service) method() string {
	switch s {
	case Token, Reception, RFCE, Approval, Annulment, PeerToken, PeerReception, PeerApproval:
		return http.MethodPost
	case Emulator:
		return ""
	default:
		return http.MethodGet
	}
}

// The hosts.
const (
	hostECF    = "ecf-host"
	hostFC     = "fc-host"
	hostStatus = "status-host"
	hostPeer   = "peer"
)

// A target is the destination of a call.
type target struct {
	host, amb, peer string
	service         Service
	rest            string // of the path
}

// route finds the target of a request. The case of the path does not matter. A request
// with one of the authority's own host names needs no path prefix.
func route(r *http.Request) (target, bool) {
	path := strings.Trim(strings.ToLower(r.URL.Path), "/")
	host, rest, _ := strings.Cut(path, "/")
	if virtual := virtualHost(r.Host); virtual != "" {
		host, rest = virtual, path
	}
	t := target{host: host}
	switch host {
	case hostECF, hostFC:
		t.amb, t.rest, _ = strings.Cut(rest, "/")
		if !isEnvironment(t.amb) {
			return t, false
		}
		t.service = ecfService(t.rest)
		if host == hostFC {
			t.service = fcService(t.rest)
		}
		if fe, ok := strings.CutPrefix(t.rest, "emisorreceptor/"); ok && host == hostECF && t.amb == TestECF {
			t.peer, t.rest = emulatorRNC, fe
			if t.service = peerService(fe); t.service == "" {
				t.service = Emulator
			}
		}
	case hostStatus:
		if after, ok := strings.CutPrefix(rest, "api/estatusservicios/"); ok {
			t.service, t.rest = Status, after
		}
	case hostPeer:
		t.peer, t.rest, _ = strings.Cut(rest, "/")
		t.service = peerService(t.rest)
	}
	return t, t.service != ""
}

func virtualHost(host string) string {
	name, _, _ := strings.Cut(strings.ToLower(host), ":")
	switch name {
	case "ecf.dgii.gov.do":
		return hostECF
	case "fc.dgii.gov.do":
		return hostFC
	case "statusecf.dgii.gov.do":
		return hostStatus
	}
	return ""
}

func ecfService(path string) Service {
	switch path {
	case "autenticacion/api/autenticacion/semilla":
		return Seed
	case "autenticacion/api/autenticacion/validarsemilla":
		return Token
	case "recepcion/api/facturaselectronicas":
		return Reception
	case "consultaresultado/api/consultas/estado":
		return Result
	case "consultaestado/api/consultas/estado":
		return StateLookup
	case "consultatrackids/api/trackids/consulta":
		return TrackIDs
	case "consultadirectorio/api/consultas/listado", "consultadirectorio/api/consultas/obtenerdirectorioporrnc":
		return Directory
	case "aprobacioncomercial/api/aprobacioncomercial":
		return Approval
	case "anulacionrangos/api/operaciones/anularrango":
		return Annulment
	case "consultatimbre":
		return Stamp
	}
	return ""
}

func fcService(path string) Service {
	switch path {
	case "recepcionfc/api/recepcion/ecf":
		return RFCE
	case "consultarfce/api/consultas/consulta":
		return RFCELookup
	case "consultatimbrefc":
		return StampFC
	}
	return ""
}

func peerService(path string) Service {
	switch path {
	case "fe/autenticacion/api/semilla":
		return PeerSeed
	case "fe/autenticacion/api/validacioncertificado":
		return PeerToken
	case "fe/recepcion/api/ecf", "fe/recepción/api/ecf":
		return PeerReception
	case "fe/aprobacioncomercial/api/ecf":
		return PeerApproval
	}
	return ""
}

// queryOf returns the parameters of a call by their names in lower case.
func queryOf(u *url.URL) map[string]string {
	query := map[string]string{}
	values, _ := url.ParseQuery(u.RawQuery) // parameters that cannot be read are ignored
	for name, value := range values {
		query[strings.ToLower(name)] = value[0]
	}
	return query
}

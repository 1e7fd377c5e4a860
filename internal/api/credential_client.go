package api

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/access"
	"github.com/fiscalhub/fiscalhub/internal/lang"
)

// checkClient refuses a client that may not use the credential: its address is not in the
// allowed networks of the credential, or it does not have a client certificate of the
// credential. The request counts against the limit of the address, not of the credential:
// a stolen key must not use up the requests of its owner.
func (a *API) checkClient(x *exchange) error {
	c := x.credential
	if len(c.AllowedNetworks) > 0 {
		if address, known := a.o.Clients.Client(x.r); !known || !c.AllowsAddress(address) {
			return a.refuseClient(x, reasonWrongAddress, lang.Messagef(
				"this credential may not be used from this address", "esta credencial no se puede usar desde esta dirección"))
		}
	}
	if len(c.ClientCertificates) > 0 && !c.AllowsCertificate(clientCertificate(x.r, a.o.Now())) {
		return a.refuseClient(x, reasonWrongCertificate, lang.Messagef(
			"this credential may only be used with its client certificate", "esta credencial se puede usar solo con su certificado de cliente"))
	}
	return nil
}

func (a *API) refuseClient(x *exchange, reason access.Reason, message lang.Message) error {
	a.countAnonymous(x)
	a.refuse(x, reason, x.credential.Prefix, x.credential)
	return forbidden(message)
}

// clientCertificate returns the fingerprint of the client certificate of a connection, or
// an empty text. The handshake has proven that the client has its private key.
func clientCertificate(r *http.Request, now time.Time) string {
	if r.TLS == nil || len(r.TLS.PeerCertificates) == 0 {
		return ""
	}
	leaf := r.TLS.PeerCertificates[0]
	if now.Before(leaf.NotBefore) || now.After(leaf.NotAfter) {
		return ""
	}
	digest := sha256.Sum256(leaf.Raw)
	return hex.EncodeToString(digest[:])
}

package api

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"time"
)

// checkClient refuses a client that may not use the credential: its address is not in the
// allowed networks of the credential, or it does not have a client certificate of the
// credential. The request counts against the limit of the address, not of the credential:
// a stolen key must not use up the requests of its owner.
func (a *API) checkClient(x *exchange) error {
	c, reason := x.credential, ""
	if len(c.AllowedNetworks) > 0 {
		if address, known := clientAddress(x.r, a.proxies); !known || !c.AllowsAddress(address) {
			reason = "this credential may not be used from this address"
		}
	}
	if reason == "" && len(c.ClientCertificates) > 0 && !c.AllowsCertificate(clientCertificate(x.r, a.now())) {
		reason = "this credential may only be used with its client certificate"
	}
	if reason == "" {
		return nil
	}
	if a.countAnonymous(x) { // limits the lines of the log
		a.log.Warn("A credential was used by a client that it does not allow. The service refuses the request. If the client is not yours, revoke the credential.",
			"credential", c.Prefix, "address", clientNetwork(x.r, a.proxies), "reason", reason, "request_id", x.id)
	}
	return forbidden("%s", reason)
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

package main

// peerFlag is the flag about the receivers of buyers.
type peerFlag struct {
	PeerAuthentication string `help:"When the service authenticates to the receivers of buyers, that is, signs a seed of theirs: on-demand (after a receiver has refused a delivery without a token) or never." enum:"on-demand,never" default:"on-demand"`
}

// neverAuthenticates reports whether the service authenticates to no receiver.
func (f peerFlag) neverAuthenticates() bool { return f.PeerAuthentication == "never" }

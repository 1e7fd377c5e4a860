package api

// slots are what a request holds while it executes: a slot of the service and a
// slot of its credential. Each field releases one slot; nil: it is not held.
type slots struct{ service, credential func() }

// release gives back the slots that are held.
func (s *slots) release() {
	held := *s
	*s = slots{}
	for _, release := range []func(){held.credential, held.service} {
		if release != nil {
			release()
		}
	}
}

// takeCredentialSlot takes a slot of the credential, so that one credential
// cannot hold all slots of the service. A request that must wait for it gives
// its slot of the service back meanwhile.
func (a *API) takeCredentialSlot(x *exchange) error {
	if release, ok := a.credentialConcurrency.of(x.credential.Prefix).tryAcquire(); ok {
		x.slots.credential = release
		return nil
	}
	x.slots.release()
	return a.takeSlots(x)
}

// takeSlots takes both slots for a request that holds none.
func (a *API) takeSlots(x *exchange) error {
	credential, err := a.credentialConcurrency.of(x.credential.Prefix).acquire(x.r.Context())
	if err != nil {
		a.rateLimiter.giveBack(x.credential.Prefix, &x.window)
		a.metrics.shed.WithLabelValues("credential").Inc()
		return shed(rateLimited(1, "too many requests of this credential are executing; try again after Retry-After seconds"))
	}
	service, err := a.concurrency.acquire(x.r.Context())
	if err != nil {
		credential()
		return a.overloaded()
	}
	x.slots = slots{service: service, credential: credential}
	return nil
}

// overloaded returns the refusal of a request for which the service has no slot.
func (a *API) overloaded() error {
	a.metrics.shed.WithLabelValues("service").Inc()
	return shed(unavailable("the service is overloaded; send the same request again after Retry-After seconds"))
}

package api

// places are the room that a request takes while it executes: one place in the
// service, and one among those of its credential.
type places struct{ service, own func() }

// leave gives back what is held.
func (p *places) leave() {
	held := *p
	*p = places{}
	for _, leave := range []func(){held.own, held.service} {
		if leave != nil {
			leave()
		}
	}
}

// slot keeps the requests of one credential from taking all places: while one
// waits for its turn it gives its place in the service back.
func (a *API) slot(x *exchange) error {
	if own, ok := a.gates.of(x.credential.Prefix).tryEnter(); ok {
		x.places.own = own
		return nil
	}
	x.places.leave()
	return a.enter(x)
}

// enter takes both places of a request that has none.
func (a *API) enter(x *exchange) error {
	own, err := a.gates.of(x.credential.Prefix).enter(x.r.Context())
	if err != nil {
		a.windows.giveBack(x.credential.Prefix, &x.window)
		a.metrics.shed.WithLabelValues("credential").Inc()
		return crowded(rateLimited(1, "too many requests of this credential are under way"))
	}
	service, err := a.gate.enter(x.r.Context())
	if err != nil {
		own()
		return a.overloaded()
	}
	x.places = places{service, own}
	return nil
}

// overloaded refuses a request for want of room in the service.
func (a *API) overloaded() error {
	a.metrics.shed.WithLabelValues("service").Inc()
	return crowded(unavailable("the service is overloaded; send the same request again later"))
}

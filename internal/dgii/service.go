package dgii

import (
	"context"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

// A service is one web service of the authority, with its own circuit breaker.
type service struct {
	name  string
	base  string // its URL
	slots slots  // of its host; several services share a host
	spare bool   // calls take only slots that other calls do not need
	// spareWait is how soon a spare call that found no slot may try again.
	spareWait time.Duration
	breaker   *circuitBreaker
	absence   *absence
}

// acquireSlot waits for a slot of the host. For a spare call it does not wait: it
// fails when fewer than half of the slots are free.
func (s *service) acquireSlot(ctx context.Context) (free func(), err error) {
	if s.spare {
		free, ok := s.slots.acquireSpare()
		if !ok {
			return nil, s.busyError()
		}
		return free, nil
	}
	if free, err = s.slots.acquire(ctx); err != nil {
		return nil, &callError{kind: fiscal.ErrNotReceived, service: s.name, text: "no free slot", cause: err, uncalled: true}
	}
	return free, nil
}

// busyError returns the error of a spare call that other calls leave no slot.
func (s *service) busyError() error {
	return &callError{kind: fiscal.ErrNotReceived, service: s.name, text: "other calls need the slots", cause: &RetryAfterError{s.spareWait}, uncalled: true}
}

// initServices sets the services of the client. A host receives at most
// maxInFlight calls at the same time.
func (c *Client) initServices(maxInFlight int) {
	hosts := make(map[string]slots) // by origin
	newService := func(name, host, path string) *service {
		origin, _ := originOf(host) // checked by Hosts.check
		if hosts[origin] == nil {
			hosts[origin] = newSlots(maxInFlight)
		}
		s := &service{
			name: name, base: host + "/" + c.hosts.Environment + "/" + path, slots: hosts[origin],
			breaker: &circuitBreaker{
				now: c.now, probeEvery: c.pace.Scale(probeInterval),
				onChange: func(open bool) { c.logCircuit(name, open) },
			},
			absence: &absence{
				production: c.hosts.isProduction(), documented: c.hosts.lacks(name),
				now: c.now, span: c.pace.Scale(absenceSpan),
			},
		}
		c.services = append(c.services, s)
		return s
	}
	c.auth = newService("auth", c.hosts.ECF, "autenticacion/api/autenticacion/")
	c.reception = newService("reception", c.hosts.ECF, "recepcion/api/facturaselectronicas")
	c.rfce = newService("rfce", c.hosts.FC, "recepcionfc/api/recepcion/ecf")
	c.result = newService("result", c.hosts.ECF, "consultaresultado/api/consultas/estado")
	c.state = newService(stateService, c.hosts.ECF, "consultaestado/api/consultas/estado")
	c.trackIDs = newService(trackIDsService, c.hosts.ECF, "consultatrackids/api/trackids/consulta")
	c.rfceLookup = newService("consultarfce", c.hosts.FC, "consultarfce/api/consultas/consulta")
	c.directory = newService(directoryService, c.hosts.ECF, "consultadirectorio/api/consultas/obtenerdirectorioporrnc")
}

// A Circuit is the state of the circuit breaker of a service.
type Circuit struct {
	Service string
	Open    bool // the service fails, and is only probed from time to time
}

// Circuits returns the state of all services of the authority.
func (c *Client) Circuits() []Circuit {
	all := make([]Circuit, len(c.services))
	for i, s := range c.services {
		all[i] = Circuit{s.name, s.breaker.isOpen()}
	}
	return all
}

func (c *Client) logCircuit(service string, open bool) {
	if open {
		c.log.Warn("A service of the tax authority fails. Its circuit is open: this node calls it only from time to time, to see whether it works again.", "service", service)
	} else {
		c.log.Info("A service of the tax authority works again. Its circuit is closed.", "service", service)
	}
}

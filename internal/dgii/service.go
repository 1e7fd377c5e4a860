package dgii

// A service is one web service of the authority, with its own circuit breaker.
type service struct {
	name    string
	base    string // its URL
	origin  string // of its host; several services share a host
	breaker *circuitBreaker
}

// initServices sets the services of the client.
func (c *Client) initServices() {
	newService := func(name, host, path string) *service {
		origin, _ := originOf(host) // checked by Hosts.check
		return &service{name: name, base: host + "/" + c.hosts.Environment + "/" + path, origin: origin, breaker: &circuitBreaker{
			now: c.now, probeEvery: c.pace.Scale(probeInterval),
			onChange: func(open bool) { c.logCircuit(name, open) },
		}}
	}
	c.auth = newService("auth", c.hosts.ECF, "autenticacion/api/autenticacion/")
	c.reception = newService("reception", c.hosts.ECF, "recepcion/api/facturaselectronicas")
	c.rfce = newService("rfce", c.hosts.FC, "recepcionfc/api/recepcion/ecf")
	c.result = newService("result", c.hosts.ECF, "consultaresultado/api/consultas/estado")
	c.state = newService("state", c.hosts.ECF, "consultaestado/api/consultas/estado")
	c.trackIDs = newService("trackids", c.hosts.ECF, "consultatrackids/api/trackids/consulta")
	c.rfceLookup = newService("consultarfce", c.hosts.FC, "consultarfce/api/consultas/consulta")
	c.directory = newService("directory", c.hosts.ECF, "consultadirectorio/api/consultas/obtenerdirectorioporrnc")
}

func (c *Client) logCircuit(service string, open bool) {
	if open {
		c.log.Warn("a service of the tax authority fails: its circuit is open, and the service is probed from time to time", "service", service)
	} else {
		c.log.Info("a service of the tax authority works again: its circuit is closed", "service", service)
	}
}

package main

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"os"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/dgii"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// trustedRoots checks the certificates of --trust.
func (d *doctor) trustedRoots(context.Context) []checkOutcome {
	action := lang.Messagef("Name a PEM file of the roots that you trust with --trust.",
		"Indique con --trust un archivo PEM de las raíces en que confía.")
	if d.flags.Trust == "" {
		return failed(lang.Messagef("No trusted roots are configured: the service refuses every acknowledgement and every response of a buyer.",
			"No hay raíces de confianza configuradas: el servicio rechaza todo acuse y toda respuesta de un comprador."), action)
	}
	rest, err := os.ReadFile(d.flags.Trust)
	if err != nil {
		return failed(lang.Messagef("The file of the trusted roots cannot be read: %s.",
			"El archivo de raíces de confianza no se puede leer: %s.", err), action)
	}
	var found []checkOutcome
	if info, err := os.Stat(d.flags.Trust); err == nil && isWritableByOthers(info) {
		found = failed(lang.Messagef("Other users may change %s (mode %04o), and so whom the service trusts.",
			"Otros usuarios pueden cambiar %s (modo %04o) y así en quién confía el servicio.", d.flags.Trust, info.Mode().Perm()), lang.Messagef("Run chmod 644 %s.",
			"Ejecute chmod 644 %s.", d.flags.Trust))
	}
	count := 0
	for {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			continue
		}
		root, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return failed(lang.Messagef("A certificate in %s cannot be read: %s.",
				"Un certificado en %s no se puede leer: %s.", d.flags.Trust, err), action)
		}
		count++
		switch left := root.NotAfter.Sub(d.now()); {
		case left <= 0:
			found = append(found, warned(lang.Messagef("The root %s expired on %s.",
				"La raíz %s venció el %s.", root.Subject, formatTime(root.NotAfter)), lang.Messagef("Add its successor to %s.",
				"Agregue su sucesora a %s.", d.flags.Trust))...)
		case left < fiscal.EndsSoon:
			found = append(found, warned(lang.Messagef("The root %s expires on %s.",
				"La raíz %s vence el %s.", root.Subject, formatTime(root.NotAfter)), lang.Messagef("Add its successor to %s.",
				"Agregue su sucesora a %s.", d.flags.Trust))...)
		}
	}
	if count == 0 {
		return failed(lang.Messagef("The file %s contains no certificates in PEM.",
			"El archivo %s no contiene certificados en PEM.", d.flags.Trust), action)
	}
	return orPassed(found, lang.Messagef("The service trusts %s of %s.",
		"El servicio confía en %s de %s.", plural(count, lang.Messagef("root", "raíz"), lang.Messagef("roots", "raíces")), d.flags.Trust))
}

// reachability asks the tax authority for a seed, twice: two answers confirm its clock. A
// seed needs no certificate and changes nothing.
func (d *doctor) reachability(ctx context.Context) []checkOutcome {
	options, err := d.flags.client(d.env, d.now, slog.New(slog.DiscardHandler))
	var client *dgii.Client
	if err == nil {
		client, err = dgii.New(options)
	}
	if err != nil {
		return failed(lang.Messagef("The address of the tax authority cannot be used: %s.",
			"La dirección de la DGII no se puede usar: %s.", err), lang.Messagef("Correct --authority or --authority-environment.",
			"Corrija --authority o --authority-environment."))
	}
	for range 2 {
		if err := client.Probe(ctx); err != nil {
			client.Close()
			return failed(lang.Messagef("The tax authority does not answer: %s.", "La DGII no responde: %s.", err),
				lang.Messagef("Check the network, the proxy and the firewall of this machine. Signed documents wait and are sent when it answers.",
					"Revise la red, el proxy y el cortafuegos de esta máquina. Los documentos firmados esperan y se envían cuando responda."))
		}
	}
	d.authority = client
	return passed(lang.Messagef("The tax authority answers.", "La DGII responde."))
}

// maxAuthoritySkew is the difference from the tax authority's clock beyond which a node
// signs and sends nothing.
const maxAuthoritySkew = 2 * time.Minute

// zone checks that the zone data of this machine are those that the service was made for.
func (d *doctor) zone(context.Context) []checkOutcome {
	if err := checkZone(); err != nil {
		return failed(lang.Messagef("The zone data of this machine are wrong: %s.",
			"Los datos de zona horaria de esta máquina no son correctos: %s.", err), lang.Messagef("Install the version of the service that knows the new offset, or correct the zone data.",
			"Instale la versión del servicio que conoce la nueva diferencia, o corrija los datos de zona horaria."))
	}
	return passed(lang.Messagef("The zone data have America/Santo_Domingo four hours behind UTC.",
		"Los datos de zona horaria tienen America/Santo_Domingo cuatro horas detrás de UTC."))
}

// databaseClock compares the clocks of this machine and of the database server.
func (d *doctor) databaseClock(context.Context) []checkOutcome {
	if !d.store.Shared() {
		return passed(lang.Messagef("SQLite uses the clock of this machine.", "SQLite usa el reloj de esta máquina."))
	}
	skew, known := d.store.ClockSkew()
	switch {
	case !known:
		return warned(lang.Messagef("The database server answers too slowly to compare the clocks.",
			"El servidor de base de datos responde demasiado lento para comparar los relojes."), lang.Messagef("Check the network between this machine and the database server.",
			"Revise la red entre esta máquina y el servidor de base de datos."))
	case skew.Abs() > store.MaxClockSkew:
		return failed(lang.Messagef("The clock of this machine is %s the clock of the database server: this node signs and sends nothing.",
			"El reloj de esta máquina está %s del reloj del servidor de base de datos: este nodo no firma ni envía nada.", ahead(skew)), lang.Messagef("Set the clock of this machine, for example with NTP.",
			"Ajuste el reloj de esta máquina, por ejemplo con NTP."))
	}
	return passed(lang.Messagef("The clock of this machine agrees with that of the database server.",
		"El reloj de esta máquina coincide con el del servidor de base de datos."))
}

// authorityClock compares the clocks of this machine and of the tax authority.
func (d *doctor) authorityClock(context.Context) []checkOutcome {
	if d.authority == nil {
		return warned(lang.Messagef("Not checked, because the tax authority does not answer.",
			"No se revisó, porque la DGII no responde."), lang.Messagef("First do what the check of the reachability says.",
			"Haga primero lo que dice la revisión del acceso."))
	}
	offset, known := d.authority.Clock()
	switch {
	case !known:
		return warned(lang.Messagef("The answers of the tax authority have no usable date.",
			"Las respuestas de la DGII no tienen una fecha que se pueda usar."), lang.Messagef("Compare the clock of this machine with another source, for example with NTP.",
			"Compare el reloj de esta máquina con otra fuente, por ejemplo con NTP."))
	case offset.Abs() > maxAuthoritySkew:
		return failed(lang.Messagef("The clock of this machine is %s the clock of the tax authority: the service signs nothing.",
			"El reloj de esta máquina está %s del reloj de la DGII: el servicio no firma nada.", ahead(-offset)), lang.Messagef("Set the clock of this machine, for example with NTP.",
			"Ajuste el reloj de esta máquina, por ejemplo con NTP."))
	}
	return passed(lang.Messagef("The clock of this machine agrees with that of the tax authority.",
		"El reloj de esta máquina coincide con el de la DGII."))
}

// ahead describes the difference of a clock from another one.
func ahead(skew time.Duration) lang.Message {
	if skew < 0 {
		return lang.Messagef("%s behind", "%s detrás", skew.Abs().Round(time.Second))
	}
	return lang.Messagef("%s ahead of", "%s delante", skew.Round(time.Second))
}

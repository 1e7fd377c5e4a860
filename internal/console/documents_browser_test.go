package console

import (
	"net/url"
	"os"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/simulator"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// An operator follows a document from its creation to the acceptance without a reload,
// finds it by every identifier, and decides an unknown outcome with evidence, all in a
// real browser.
func TestDocumentsInABrowser(t *testing.T) {
	t.Parallel()
	w := newLiveEnv(t, storetest.Address(t, "sqlite"))
	b := w.openTab()
	u := b.signIn(w.env, store.RoleOperator)
	inv := w.create(fiscal.FiscalCredit, "Ferretería Pérez, SRL", 12_500)

	b.open("/console/documents/" + inv.DocumentID)
	b.wait(`document.querySelector('.document-status').innerText.includes('En cola')`)
	b.evaluate(`(window.mark = 1, true)`)
	b.picture("document-queued")
	w.work() // takes a number, signs and sends
	b.wait(`document.querySelector('.document-status').innerText.includes('Enviado') && document.querySelector('h1').innerText === 'E310000000001'`)
	b.picture("document-submitted")
	w.drive(time.Hour)
	b.wait(`document.querySelector('.document-status').innerText.includes('Aceptado') && document.querySelector('iframe.printed') && !document.querySelector('[data-live]')`)
	b.wait(`window.mark === 1 && document.querySelector('#announcer').innerText === 'Aceptado' && document.querySelectorAll('.moment').length >= 7`)
	inv = w.read(inv)
	b.click("#xml-readable summary")
	b.picture("document-accepted")

	for _, q := range []string{inv.ExternalID, inv.ENCF, inv.TrackID, liveBuyer, "ferreteria perez", "14,750.00", "req_1", "clave-1", inv.DocumentID} {
		b.open("/console/")
		b.fill("#q", q+kb.Enter)
		b.wait(`location.pathname === '/console/documents' && document.querySelectorAll('tbody tr').length === 1`)
	}
	b.click(`tbody a`)
	b.wait(`document.querySelector('h1').innerText === 'E310000000001'`)

	unknown := w.unknown("Comercial Demostración, SRL", 980)
	b.open("/console/documents/" + unknown.DocumentID)
	b.wait(`document.querySelector('.advice').innerText.includes('No emita la venta otra vez')`)
	b.picture("document-unknown")
	b.do("as", chromedp.SetValue("#as", "rejected"))
	b.fill("#evidence", "Oficina Virtual, 15/11/2026: no existe")
	b.confirm(`form[action$="/resolve"] button`, "")
	b.wait(`document.querySelector('.notice-good') && document.querySelector('.document-status').innerText.includes('Rechazado')`)
	b.wait(`document.querySelector('.timeline').innerText.includes('` + u.Name + `')`)

	w.pictures()
}

// pictures shows the pages with documents in every state, for a person to look at.
func (w *liveEnv) pictures() {
	w.t.Helper()
	if os.Getenv("FISCALHUB_PICTURES") == "" {
		return
	}
	rejected := w.judged(2, simulator.Message{Code: 145, Text: "Fecha de vencimiento de secuencia no válida"}, "Inversiones Costa Norte, SRL", 43_200)
	conditional := w.judged(4, simulator.Message{Code: 1385, Text: "RNC del comprador no existe"}, "Clínica San Rafael, SA", 7_800)
	for i := range 60 {
		w.create(fiscal.Consumer, "Colmado La Esquina", 150+i*37)
		if i%6 == 0 {
			w.clock.Advance(50 * time.Minute)
		}
		w.drive(time.Minute)
	}
	w.create(fiscal.FiscalCredit, "Ferretería Pérez, SRL", 2_000)
	w.unknown("Distribuidora del Caribe, SRL", 5_100)
	w.index()
	for theme, suffix := range map[string]string{"light": "", "dark": "-dark"} {
		b := w.openTab()
		u := b.signIn(w.env, store.RoleOperator)
		w.must(w.o.People.SetPreferences(w.t.Context(), u.ID, "es", theme))
		for name, path := range map[string]string{
			"overview": "/console/", "documents": "/console/documents", "documents-none": "/console/documents?q=" + url.QueryEscape("nada así"),
			"document-rejected": documentAddress(rejected.DocumentID), "document-conditional": documentAddress(conditional.DocumentID),
		} {
			b.open(path)
			b.picture(name + suffix)
		}
	}
}

package simulation

import (
	"context"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/dgii"
	"github.com/fiscalhub/fiscalhub/internal/ecf"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/strictjson"
	"github.com/fiscalhub/fiscalhub/internal/taxpayer"
)

// otherProvider sends a document of the taxpayer under a number that the service is about
// to use: a previous provider, or a copy of a database, has the same range.
func (w *world) otherProvider() {
	var next, last int64
	w.must(w.rows.QueryRowContext(w.ctx(), `SELECT coalesce(min(next_number), 0), coalesce(max(last_number), 0) FROM number_ranges WHERE ecf_type = '31' AND next_number <= last_number`).Scan(&next, &last))
	number := next + w.draw64(3)
	if next == 0 || number > last {
		return
	}
	encf, err := fiscal.NewENCF(fiscal.FiscalCredit, number)
	w.must(err)
	w.tracef("other", "sends a document as %s", encf)
	w.record(func() { w.doubled[encf.String()] = true })
	w.spawn(nil, "other", func() {
		xml, err := w.foreignDocument(encf)
		w.must(err)
		digest := digestOf(xml)
		w.record(func() { w.foreign[digest] = true })
		if err := w.sendAsOther(encf.String(), xml); err != nil {
			w.tracef("other", "cannot send it")
		}
	})
}

// foreignDocument signs a document.
func (w *world) foreignDocument(encf fiscal.ENCF) ([]byte, error) {
	parsed, err := strictjson.Parse(request("other", "31", 7777))
	if err != nil {
		return nil, err
	}
	inv, err := fiscal.New(fiscal.DecodeRequest(parsed))
	if err != nil {
		return nil, err
	}
	expires, err := fiscal.ParseDate("2027-12-31")
	if err != nil {
		return nil, err
	}
	issuer := taxpayer.IssuerOf(store.Taxpayer{RNC: issuerRNC, LegalName: "Prueba, SRL", Address: "Calle 1", Phones: []string{}, IncomeType: "01"})
	draft, err := ecf.New(issuer, ecf.Number{ENCF: encf, Expires: expires}, inv, w.now().Add(-2*time.Minute))
	if err != nil {
		return nil, err
	}
	xml, _, err := draft.Sign(w.tp.id)
	return xml, err
}

// sendAsOther submits a document without a node of ours.
func (w *world) sendAsOther(encf string, xml []byte) error {
	other := &node{w: w, index: -1, name: "other"}
	hosts, err := dgii.SimulatorHosts(origin, "ecf")
	if err != nil {
		return err
	}
	client, err := dgii.New(dgii.Options{Hosts: hosts, Now: w.now, Roots: w.tp.roots, AllowOrigin: origin, Dial: other.dial})
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
	defer cancel()
	send, release, err := client.Reserve(ctx, w.tp.id, issuerRNC, false)
	if err != nil {
		return err
	}
	defer release()
	_, err = send(ctx, fiscal.Shipment{RNC: issuerRNC, ENCF: encf, XML: xml})
	return err
}

package main

import (
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"time"

	"github.com/fiscalhub/fiscalhub/client"
	"github.com/fiscalhub/fiscalhub/internal/bulk"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/lang"
)

type sendCmd struct {
	File     string `arg:"" help:"Invoices: one JSON object a line, a JSON array, or CSV with --map." placeholder:"FILE"`
	BaseURL  string `name:"base-url" help:"Address of the service (default http://127.0.0.1:8080)." default:"http://127.0.0.1:8080" placeholder:"URL"`
	Taxpayer string `help:"Id of the taxpayer. Required unless --check is given." placeholder:"ID"`
	Key      string `help:"API key with the scopes invoices.write, ecf.submit and invoices.read. Required unless --check is given; FISCALHUB_KEY keeps it out of the list of processes." placeholder:"KEY"`
	Check    bool   `help:"Check every invoice and send none."`
	Wait     bool   `help:"Wait until every invoice has a final status."`
	Results  string `help:"File for the results, one JSON object for each invoice." placeholder:"FILE"`
	Journal  string `help:"File that remembers what was sent, so that the command can be repeated. By default FILE.journal." placeholder:"FILE"`
	Map      string `help:"The file is CSV; FILE says which column is which member of an invoice." placeholder:"FILE"`
	Parallel int    `help:"Requests at the same time, 1 to 64 (default 8)." default:"8" placeholder:"N"`
}

// attemptsOfSend is how often a request is repeated while the service does not answer:
// for about three minutes.
const attemptsOfSend = 20

// timeoutOfSend is how long one attempt may take; the service answers sooner.
const timeoutOfSend = time.Minute

// Run checks the invoices of a file and sends them. It fails when an invoice was refused,
// or was not sent.
func (c sendCmd) Run(t *terminal) error {
	if err := c.check(); err != nil {
		return err
	}
	lines, err := c.read()
	if err != nil {
		return lang.Errorf("%s: %s", "%s: %s", c.File, err)
	}
	if c.Check {
		return c.report(t, bulk.Results(lines, nil, t.language), nil)
	}
	// Each worker keeps its connection; the default transport keeps two in all.
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, MaxIdleConnsPerHost: c.Parallel}
	defer transport.CloseIdleConnections()
	api, err := newAPIClient(c.BaseURL, c.Key, c.Taxpayer, client.WithAttempts(attemptsOfSend), client.WithLanguage(string(t.language)),
		client.WithHTTPClient(&http.Client{Transport: transport, Timeout: timeoutOfSend}))
	if err != nil {
		return err
	}
	path := c.Journal
	if path == "" {
		path = c.File + ".journal"
	}
	journal, err := bulk.OpenJournal(path, apiBase(c.BaseURL), c.Taxpayer)
	if errors.Is(err, bulk.ErrOtherJournal) {
		return lang.Errorf("%s: name another file with --journal", "%s: indique otro archivo con --journal", err)
	}
	if err != nil {
		return err
	}
	err = c.send(t, &bulk.Sender{API: api, Journal: journal, Parallel: c.Parallel, Language: t.language}, lines)
	results := bulk.Results(lines, journal, t.language)
	return errors.Join(c.report(t, results, err), journal.Close())
}

func (c sendCmd) check() error {
	switch {
	case !c.Check && (c.Taxpayer == "" || c.Key == ""):
		return wrongUsage("--taxpayer and --key are required, unless --check is given", "--taxpayer y --key son obligatorios, salvo con --check")
	case c.Parallel < 1 || c.Parallel > 64:
		return wrongUsage("--parallel must be a number from 1 to 64", "--parallel debe ser un número de 1 a 64")
	}
	return nil
}

func (c sendCmd) read() (lines []*bulk.Line, err error) {
	f, err := os.Open(c.File)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	if c.Map == "" {
		return bulk.Read(f)
	}
	text, err := os.ReadFile(c.Map)
	if err != nil {
		return nil, err
	}
	m, err := bulk.ParseMap(text)
	if err != nil {
		return nil, lang.Errorf("%s: %s", "%s: %s", c.Map, err)
	}
	return bulk.ReadCSV(f, m)
}

// send sends the lines with progress, and waits for their outcomes if that is asked for.
func (c sendCmd) send(t *terminal, s *bulk.Sender, lines []*bulk.Line) error {
	counts := make(map[string]int64)
	var done int64
	for _, r := range bulk.Results(lines, s.Journal, t.language) {
		if r.Status != bulk.NotSent && (r.InvoiceID != "" || r.Error != "") {
			counts[r.Status]++
			done++
		}
	}
	total := int64(len(lines))
	invoices := lang.Messagef("invoices", "facturas")
	bar := t.startProgress(lang.Messagef("sending", "envío"), invoices)
	defer bar.end(t)
	bar.report(done, total)
	s.Progress = func(r bulk.Result) {
		counts[r.Status]++
		done++
		bar.unit = lang.Messagef("%s (%s)", "%s (%s)", invoices, countsText(counts))
		bar.report(min(done, total), total)
	}
	if err := s.Send(t.ctx, lines); err != nil {
		again := lang.Messagef("%d of %d invoices were sent. Run the same command again to send the others; no invoice is made twice",
			"%d de %d facturas enviadas. Ejecute el mismo comando otra vez para enviar las demás; ninguna factura se crea dos veces",
			countSent(bulk.Results(lines, s.Journal, t.language)), total)
		if t.ctx.Err() == nil {
			return lang.Errorf("%s.%s %s", "%s.%s %s", err, adviceOfAnswer(err), again)
		}
		return t.interrupted(err, again)
	}
	if !c.Wait {
		return nil
	}
	var final int64
	s.Progress = func(bulk.Result) {
		final++
		bar.about(lang.Messagef("waiting for outcomes", "espera de resultados"), final, total)
	}
	bar.unit = invoices
	err := s.Wait(t.ctx, lines)
	return t.interrupted(err, lang.Messagef("all invoices were sent, but not all have a final status. Run the same command again to wait for them",
		"se enviaron todas las facturas, pero no todas tienen un estado final. Ejecute el mismo comando otra vez para esperarlas"))
}

// countSent returns how many invoices the service has.
func countSent(results []bulk.Result) int {
	sent := 0
	for _, r := range results {
		if r.InvoiceID != "" {
			sent++
		}
	}
	return sent
}

// adviceOfAnswer returns a sentence about what to change before the command is run again,
// after a space, or nothing.
func adviceOfAnswer(err error) lang.Message {
	var refused *client.Error
	var unreachable *net.OpError
	switch {
	case errors.As(err, &refused) && (refused.HTTPStatus == http.StatusUnauthorized || refused.HTTPStatus == http.StatusForbidden):
		return lang.Messagef(" Check --key and --taxpayer.", " Revise --key y --taxpayer.")
	case errors.As(err, &unreachable):
		return lang.Messagef(" Check --base-url, and that the service runs.", " Revise --base-url y que el servicio esté en marcha.")
	}
	return lang.Message{}
}

// countsText lists counts by status.
func countsText(counts map[string]int64) lang.Message {
	var parts []lang.Message
	for _, status := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, lang.Messagef("%d %s", "%d %s", counts[status], statusOfInvoices(status)))
	}
	return lang.Join(parts, ", ")
}

// statusOfInvoices returns a status for a number of invoices. In English it is the word of
// the API.
func statusOfInvoices(status string) lang.Message {
	spanish, ok := map[string]string{
		bulk.NotSent: "no enviadas", bulk.Refused: "rechazadas antes del envío", string(fiscal.Queued): "en cola",
		string(fiscal.ValidationFailed): "no válidas", string(fiscal.Submitted): "enviadas", string(fiscal.Processing): "en proceso",
		string(fiscal.Accepted): "aceptadas", string(fiscal.AcceptedConditional): "aceptadas condicionalmente",
		string(fiscal.Rejected): "rechazadas por la DGII", string(fiscal.OutcomeUnknown): "con resultado desconocido",
		string(fiscal.Delivered): "entregadas",
	}[status]
	if !ok {
		spanish = status
	}
	return lang.Translated(status, spanish)
}

// report writes the results. It fails with the error that ended the run, or when an
// invoice was refused or not sent.
func (c sendCmd) report(t *terminal, results []bulk.Result, ended error) error {
	counts := make(map[string]int64)
	var wrong []bulk.Result
	for _, r := range results {
		counts[r.Status]++
		if r.Error != "" {
			wrong = append(wrong, r)
		}
	}
	if c.Results != "" {
		if err := writeResults(c.Results, results); err != nil {
			return errors.Join(ended, err)
		}
	}
	if t.cli.JSON {
		if err := encodeResults(t.out, results); err != nil {
			return errors.Join(ended, err)
		}
	} else if err := c.printResults(t, counts, wrong); err != nil {
		return errors.Join(ended, err)
	}
	switch {
	case ended != nil:
		return ended
	case len(wrong) > 0:
		return lang.Errorf("%d of %d invoices were refused: correct them and run the same command again",
			"%d de %d facturas fueron rechazadas: corríjalas y ejecute el mismo comando otra vez", len(wrong), len(results))
	}
	return nil
}

// shownProblems is how many refused invoices the command prints. All of them are in the
// results.
const shownProblems = 50

func (c sendCmd) printResults(t *terminal, counts map[string]int64, wrong []bulk.Result) error {
	return t.answer(nil, func(w io.Writer) {
		for _, r := range wrong[:min(len(wrong), shownProblems)] {
			line(w, lang.Messagef("line %d", "línea %d", r.Line).In(t.language), r.ExternalID, r.Error)
		}
		if more := len(wrong) - shownProblems; more > 0 {
			say(w, lang.Messagef("and %d more; --results FILE writes all", "y %d más; --results FILE las escribe todas", more))
		}
		if c.Check {
			say(w, lang.Messagef("%d valid, %d not valid", "%d válidas, %d no válidas", counts[bulk.NotSent], counts[bulk.Refused]))
			return
		}
		say(w, countsText(counts))
	})
}

func writeResults(path string, results []bulk.Result) (err error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(encodeResults(f, results), f.Close())
}

// encodeResults writes one JSON object a line.
func encodeResults(w io.Writer, results []bulk.Result) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	for _, r := range results {
		if err := e.Encode(r); err != nil {
			return err
		}
	}
	return nil
}

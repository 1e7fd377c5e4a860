package console

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/export"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

const (
	exportsAddress = "/console/exports"
	exportsShown   = 50
)

func (c *Console) exportPages() []page {
	see := []store.Role{store.RoleOperator, store.RoleAuditor, store.RoleAccountant}
	act := []store.Role{store.RoleOperator, store.RoleAccountant}
	return []page{
		get(exportsAddress, see, c.showExports),
		live(exportsAddress+"/list", see, updates("exports-list", (*request).exportRows)),
		post(exportsAddress, see, act, c.createExport),
		get(exportsAddress+"/{id}/file", see, on((*request).export, c.downloadExport)),
		post(exportsAddress+"/{id}/delete", see, act, on((*request).export, c.deleteExport)),
	}
}

// exportsView is the data of the page of exports.
type exportsView struct {
	Form      *form
	Taxpayers []option
	Spans     []spanLink
	List      template.HTML
}

// spanLink is a link that fills the dates of the form.
type spanLink struct{ Address, Label string }

// exportView is a row of the list.
type exportView struct {
	store.Export
	Taxpayer string
}

// Percent returns how much of the export is done.
func (v exportView) Percent() int64 {
	if v.Total <= 0 {
		return 0
	}
	return min(100, v.Done*100/v.Total)
}

// PDF reports whether the export has printed pages.
func (v exportView) PDF() bool { return strings.Contains(strings.Join(v.Include, ","), "pdf") }

// TooLarge reports whether the export failed because its file is too large.
func (v exportView) TooLarge() bool { return v.Problem == export.TooLarge }

// Again returns the address of the form with the values of the export.
func (v exportView) Again() string {
	q := url.Values{"taxpayer": {v.TaxpayerID}, "from": {v.From.String()}, "to": {v.To.String()}}
	if v.PDF() {
		q.Set("include", "pdf")
	}
	return exportsAddress + "?" + q.Encode()
}

// showExports shows the form, filled from the query string, and the exports that are kept.
func (c *Console) showExports(x *request) error {
	f := newForm(x.URL.Query())
	if f.Value("from") == "" && f.Value("to") == "" {
		from, to := monthOf(c.o.Now(), -1)
		f.values.Set("from", from)
		f.values.Set("to", to)
	}
	return x.renderExports(http.StatusOK, f)
}

// monthOf returns the first and the last day of a month: 0 is this month, -1 the
// month before.
func monthOf(now time.Time, offset int) (from, to string) {
	day := now.In(fiscal.Zone())
	first := time.Date(day.Year(), day.Month()+time.Month(offset), 1, 0, 0, 0, 0, fiscal.Zone())
	return first.Format(time.DateOnly), first.AddDate(0, 1, -1).Format(time.DateOnly)
}

func (x *request) renderExports(status int, f *form) error {
	taxpayers, err := x.chooseTaxpayer(f)
	if err != nil {
		return err
	}
	rows, err := x.exportRows()
	if err != nil {
		return err
	}
	list, err := x.live(exportsAddress+"/list", "exports-list", rows)
	if err != nil {
		return err
	}
	v := exportsView{Form: f, Taxpayers: taxpayers, List: list}
	for _, span := range []struct {
		label  string
		offset int
	}{{"exports.this_month", 0}, {"exports.last_month", -1}} {
		from, to := monthOf(x.console.o.Now(), span.offset)
		q := url.Values{"from": {from}, "to": {to}}
		if id := f.Value("taxpayer"); id != "" {
			q.Set("taxpayer", id)
		}
		v.Spans = append(v.Spans, spanLink{exportsAddress + "?" + q.Encode(), x.text(span.label)})
	}
	return x.renderStatus(status, "exports", x.text("nav.exports"), v)
}

func (x *request) exportRows() ([]exportView, error) {
	all, err := x.console.o.Store.RecentExports(x.Context(), x.viewer.Within(), exportsShown)
	if err != nil {
		return nil, err
	}
	_, names, err := x.taxpayerOptions()
	if err != nil {
		return nil, err
	}
	rows := make([]exportView, len(all))
	for i, e := range all {
		rows[i] = exportView{e, names[e.TaxpayerID]}
	}
	return rows, nil
}

// createExport starts an export in the background.
func (c *Console) createExport(x *request) error {
	f := x.sentForm()
	from := x.dateField(f, "from")
	to := x.dateField(f, "to")
	id := f.Value("taxpayer")
	if id == "" {
		choices, _, err := x.taxpayerOptions()
		if err != nil {
			return err
		}
		if len(choices) == 1 {
			id = choices[0].Value
		} else {
			f.fail("taxpayer", x.text("exports.no_taxpayer"))
		}
	}
	if !f.ok() {
		return x.renderExports(http.StatusUnprocessableEntity, f)
	}
	scope, err := x.viewer.Scope(id)
	if err != nil {
		return err
	}
	if _, err := c.o.Store.Taxpayer(x.Context(), id); err != nil {
		return err
	}
	err = x.startExport(f, scope, from, to)
	switch {
	case errors.Is(err, export.ErrSpan):
		f.fail("to", x.text("exports.wrong_span"))
	case errors.Is(err, export.ErrTooMany):
		f.fail("", x.text("exports.too_many"))
	case err != nil:
		return err
	}
	if !f.ok() {
		return x.renderExports(http.StatusUnprocessableEntity, f)
	}
	return x.done(exportsAddress, "exports.created")
}

// startExport creates the export of a form. A form that is sent again, with the same span
// and content, has its export already.
func (x *request) startExport(f *form, scope store.Scope, from, to fiscal.Date) error {
	token, err := x.formToken()
	if err != nil {
		return err
	}
	pdf, exports := f.Has("include", "pdf"), x.console.o.Exports
	if token.Token != "" { // the same page may be sent with other dates
		sum := sha256.Sum256(fmt.Appendf(nil, "%s %s %s %t", token.Token, from, to, pdf))
		token.Token = hex.EncodeToString(sum[:])
	}
	_, err = exports.CreateOnce(x.Context(), token, scope, from, to, pdf, x.viewer.Name())
	var used *store.FormUsedError
	if !errors.As(err, &used) {
		return err
	}
	if _, err = x.console.o.Store.Export(x.Context(), scope, used.ID); errors.Is(err, store.ErrNotFound) { // it was deleted
		_, err = exports.Create(x.Context(), scope, from, to, pdf, x.viewer.Name())
	}
	return err
}

// dateField reads a date of a form, and records an error when it is none.
func (x *request) dateField(f *form, name string) fiscal.Date {
	if f.Value(name) == "" {
		f.fail(name, x.text("form.required"))
		return fiscal.Date{}
	}
	d, err := fiscal.ParseDate(f.Value(name))
	if err != nil {
		f.fail(name, x.text("exports.wrong_date"))
	}
	return d
}

// export returns the export of the address, if the person sees it.
func (x *request) export() (store.Export, error) {
	return x.console.o.Store.ExportWithin(x.Context(), x.viewer.Within(), x.PathValue("id"))
}

// downloadExport answers with the file of an export.
func (c *Console) downloadExport(x *request, e store.Export) error {
	taxpayer, err := c.o.Store.Taxpayer(x.Context(), e.TaxpayerID)
	if err != nil {
		return err
	}
	f, err := c.o.Exports.Open(x.Context(), e)
	if errors.Is(err, fs.ErrNotExist) {
		return errNoFile
	}
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // it was only read
	name := taxpayer.RNC + "_" + e.From.String() + "_" + e.To.String() + ".zip"
	x.w.Header().Set("Content-Type", "application/zip")
	x.w.Header().Set("Content-Disposition", `attachment; filename="`+name+`"`)
	// A large file takes long. The listener still limits the time of each step.
	connection := http.NewResponseController(x.w)
	_, _ = connection.SetReadDeadline(time.Time{}), connection.SetWriteDeadline(time.Time{}) // a recorder has no deadlines
	http.ServeContent(x.w, x.Request, name, e.UpdatedAt, f)
	return nil
}

// errNoFile is the answer when an export is not ready, or an earlier release has made its
// file on another node.
var errNoFile = &pageError{http.StatusNotFound, "no_file"}

func (c *Console) deleteExport(x *request, e store.Export) error {
	if err := c.o.Exports.Delete(x.Context(), e); err != nil {
		return err
	}
	return x.done(exportsAddress, "exports.deleted")
}

package console

import (
	"encoding/csv"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/overview"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

const documentsAddress = "/console/documents"

func (c *Console) documentPages() []page {
	see, act := c.documentReaders(), operators()
	one, document := documentsAddress+"/{document_id}", (*request).document
	return []page{
		get(documentsAddress, see, c.showDocuments),
		get(documentsAddress+".csv", see, c.downloadDocuments),
		get(one, see, c.showDocument),
		live(one+"/progress", see, on(document, c.updateProgress)),
		live(one+"/files", see, on(document, c.updateFiles)),
		get(one+"/pdf", see, on(document, c.showPDF)),
		get(one+"/xml", see, on(document, c.downloadXML)),
		post(one+"/resolve", see, act, on(document, c.resolveDocument)),
		post(one+"/resend", see, act, on(document, c.resendDocument)),
	}
}

// documentsView is the data of the list of documents.
type documentsView struct {
	Form      *form
	Statuses  []option
	Types     []option
	Taxpayers []option // none for a viewer with one taxpayer
	Names     map[string]string
	Filtered  bool
	Page      overview.Page
	First     string // address of the first page; empty on it
	Next      string // address of the next page; empty on the last one
	CSV       string // address of the list as CSV
	MostCSV   int
}

// documentFilters are the fields of a search, in the query of the address.
func documentFilters() []string { return []string{"q", "status", "type", "taxpayer", "from", "to"} }

func (c *Console) showDocuments(x *request) error {
	query, f := x.documentQuery()
	taxpayers, names, err := x.taxpayerOptions()
	if err != nil {
		return err
	}
	v := documentsView{
		Form: f, Statuses: x.documentStatusOptions(), Types: x.typeOptions(), Names: names, MostCSV: maxCSV,
		CSV: documentsAddress + ".csv" + withQuery(f.values, ""),
	}
	if len(taxpayers) > 1 {
		v.Taxpayers = append([]option{{"", x.text("word.all_taxpayers")}}, taxpayers...)
	}
	for _, name := range documentFilters() {
		v.Filtered = v.Filtered || f.Value(name) != ""
	}
	status := http.StatusUnprocessableEntity
	if f.ok() {
		status = http.StatusOK
		v.Page, err = c.searcher.Search(x.Context(), x.viewer.Within(), query)
		if errors.Is(err, overview.ErrCursor) {
			return x.redirect(documentsAddress + withQuery(f.values, ""))
		}
		if err != nil {
			return err
		}
	}
	if query.Cursor != "" {
		v.First = documentsAddress + withQuery(f.values, "")
	}
	if v.Page.Next != "" {
		v.Next = documentsAddress + withQuery(f.values, v.Page.Next)
	}
	return x.renderStatus(status, "documents", x.text("nav.documents"), v)
}

// withQuery returns the query of a list of documents with a cursor. Empty filters are left
// out.
func withQuery(values url.Values, cursor string) string {
	kept := url.Values{}
	for _, name := range documentFilters() {
		if value := values.Get(name); value != "" {
			kept.Set(name, value)
		}
	}
	if cursor != "" {
		kept.Set("cursor", cursor)
	}
	if len(kept) == 0 {
		return ""
	}
	return "?" + kept.Encode()
}

// documentQuery reads the filters of the address. The form has the errors of the filters
// that are not valid.
func (x *request) documentQuery() (q overview.Query, f *form) {
	f = newForm(x.URL.Query())
	q = overview.Query{Text: f.Value("q"), Taxpayer: f.Value("taxpayer"), Cursor: f.Value("cursor")}
	var ok bool
	if q.Status, ok = fiscal.ParseStatus(f.Value("status")); !ok && f.Value("status") != "" {
		f.fail("status", x.text("documents.wrong_status"))
	}
	switch q.Type = fiscal.Type(f.Value("type")); q.Type {
	case "", fiscal.FiscalCredit, fiscal.Consumer:
	default:
		f.fail("type", x.text("documents.wrong_type"))
	}
	for name, date := range map[string]*fiscal.Date{"from": &q.From, "to": &q.To} {
		if text := f.Value(name); text != "" {
			var err error
			if *date, err = fiscal.ParseDate(text); err != nil {
				f.fail(name, x.text("documents.wrong_date"))
			}
		}
	}
	if f.ok() && !q.From.IsZero() && !q.To.IsZero() && q.To.Before(q.From) {
		f.fail("to", x.text("documents.wrong_order"))
	}
	return q, f
}

func (x *request) documentStatusOptions() []option {
	all := []option{{"", x.text("documents.all_statuses")}}
	for _, s := range fiscal.Statuses() {
		all = append(all, option{string(s), x.text("status." + string(s))})
	}
	return all
}

func (x *request) typeOptions() []option {
	return []option{
		{"", x.text("documents.all_types")},
		{string(fiscal.FiscalCredit), x.text("type.31")},
		{string(fiscal.Consumer), x.text("type.32")},
	}
}

// maxCSV is how many documents a CSV file has at most. An export has more.
const maxCSV = 10_000

// downloadDocuments writes the result of a search as CSV, page by page. When reading
// fails in the middle it breaks the connection, so that the browser shows that the file is
// not complete.
func (c *Console) downloadDocuments(x *request) error {
	query, f := x.documentQuery()
	if !f.ok() {
		return errBadRequest
	}
	_, names, err := x.taxpayerOptions()
	if err != nil {
		return err
	}
	query.Limit, query.Cursor = overview.MaxLimit, ""
	page, err := c.searcher.Search(x.Context(), x.viewer.Within(), query)
	if err != nil {
		return err
	}
	x.w.Header().Set("Content-Type", "text/csv; charset=utf-8")
	x.w.Header().Set("Content-Disposition", `attachment; filename="`+x.text("documents.file")+"-"+fiscal.DateOf(c.o.Now()).String()+`.csv"`)
	_, _ = x.w.Write([]byte("\ufeff")) // a spreadsheet then reads the text as UTF-8
	out := csv.NewWriter(x.w)
	_ = out.Write(csvHead()) // errors are sticky: see out.Error
	for written := 0; ; {
		for _, d := range page.Documents {
			if written++; written > maxCSV {
				_ = out.Write([]string{x.text("documents.csv_cut", maxCSV)})
				out.Flush()
				return nil
			}
			_ = out.Write(csvRow(d, names))
		}
		if out.Flush(); out.Error() != nil || page.Next == "" {
			return nil // the browser has left, or has everything
		}
		if query.Cursor, err = page.Next, http.NewResponseController(x.w).Flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
			return nil
		}
		if page, err = c.searcher.Search(x.Context(), x.viewer.Within(), query); err != nil {
			c.o.Log.Error("The console cannot read the rest of a list for a CSV file. The browser gets a part of it and an error.", "request_id", x.id, "error", err.Error())
			panic(http.ErrAbortHandler)
		}
	}
}

// csvHead are the columns of the CSV file, with the names that exports use.
func csvHead() []string {
	return []string{
		"creado", "fecha_emision", "tipo", "encf", "estado", "external_id", "rnc_comprador", "comprador", "moneda",
		"subtotal", "descuento", "itbis", "total", "track_id", "contribuyente", "document_id",
	}
}

func csvRow(d store.FoundDocument, names map[string]string) []string {
	return []string{
		d.CreatedAt.In(fiscal.Zone()).Format(time.DateTime), d.IssueDate, string(d.Type), d.ENCF, string(d.Status), plainCell(d.ExternalID),
		d.BuyerRNC, plainCell(d.BuyerName), d.Currency, d.Subtotal, d.DiscountTotal, d.TaxTotal, d.Total, d.TrackID, plainCell(names[d.TaxpayerID]), d.DocumentID,
	}
}

// plainCell keeps a spreadsheet from taking a text of another person as a formula.
func plainCell(s string) string {
	if s != "" && (s[0] == '=' || s[0] == '+' || s[0] == '-' || s[0] == '@' || s[0] == '\t' || s[0] == '\r') {
		return "'" + s
	}
	return s
}

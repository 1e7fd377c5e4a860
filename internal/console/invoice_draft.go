package console

import (
	"maps"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/pipeline"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// draftView is what the server computes of a form that a person is writing: the totals,
// what is missing, and a preview of the page.
type draftView struct {
	Form     *invoiceForm
	Taxpayer store.Taxpayer // zero when none is chosen
	Lines    []draftLine
	Totals   fiscal.Totals
	Taxes    fiscal.Decimal // ITBIS and the other taxes
	Missing  []fieldError
	Blocks   []issueBlock // what keeps the taxpayer from issuing
	TaxID    string       // none, good, warn or bad: the check of the buyer's RNC or cédula
	Complete bool
	Question *issueQuestion // nil: nothing is asked
}

// issueQuestion is what a person is asked before an invoice is issued. It names what the
// person must get right.
type issueQuestion struct {
	Type         fiscal.Type
	Buyer, TaxID string
	Total        fiscal.Decimal
}

// draftLine is a line of the preview.
type draftLine struct {
	fiscal.Line
	ID       string // of the element that shows the amount next to the fields
	Computed bool
}

// issueBlock is a reason why a taxpayer cannot issue. Address is the page where it is
// mended; empty when the person does not see that page.
type issueBlock struct{ Text, Address string }

// Amount returns an amount for the function money.
func (draftView) Amount(d fiscal.Decimal) string { return d.StringFixed(2) }

// IssueDate returns the date of issue as the printed page has it, and what was entered when
// that is no date.
func (v draftView) IssueDate() string {
	if day, err := fiscal.ParseDate(v.Form.Value("issue_date")); err == nil {
		return day.DGIIString()
	}
	return v.Form.Value("issue_date")
}

// Rate returns the percentage of a line's ITBIS; 0 for a line without.
func (l draftLine) Rate() string { return l.Indicator.Rate().String() }

// Exempt reports whether the line has no ITBIS by law.
func (l draftLine) Exempt() bool { return l.Indicator == fiscal.Exempt }

// draft computes the draft of a form. Its taxpayer must be one that the viewer sees.
func (x *request) draft(f *invoiceForm) (d draftView, err error) {
	d = draftView{Form: f, TaxID: taxIDCheck(f)}
	if id := f.Value("taxpayer"); id != "" {
		scope, err := x.viewer.Scope(id)
		if err != nil {
			return d, err
		}
		kind := fiscal.Type(f.Value("ecf_type"))
		facts, err := pipeline.ReadFacts(x.Context(), x.console.o.Store, scope, kind)
		if err != nil {
			return d, err
		}
		d.Taxpayer = facts.Taxpayer
		if d.Blocks, err = x.issueBlocks(scope, facts.Missing(kind, x.console.o.Now())); err != nil {
			return d, err
		}
	}
	_, document, err := f.document(fiscal.Totals{})
	if err != nil {
		return d, err
	}
	computed := fiscal.NewDraft(fiscal.DecodeRequest(document))
	d.Totals, d.Complete = computed.Totals, computed.Invoice != nil && d.Taxpayer.ID != ""
	d.Taxes = d.Totals.ITBIS.Add(d.Totals.AdditionalTax)
	for i, line := range computed.Lines {
		d.Lines = append(d.Lines, draftLine{line, lineName(i, "amount"), computed.Computed[i]})
	}
	missing := &invoiceForm{form: newForm(nil)}
	if d.Taxpayer.ID == "" {
		missing.fail("taxpayer", x.text("issue.no_taxpayer"))
	}
	x.failFields(missing, computed.Problems)
	d.Missing = missing.errors
	d.Question, err = x.question(f, d)
	return d, err
}

// question returns what is asked before the invoice of a form is issued. It returns nil in
// the sandbox, and when nothing would be issued: the form has an error, the taxpayer cannot
// issue, or the form has made its invoice already.
func (x *request) question(f *invoiceForm, d draftView) (*issueQuestion, error) {
	if x.console.o.Environment == fiscal.Sandbox || d.Taxpayer.ID == "" || len(d.Blocks) > 0 {
		return nil, nil //nolint:nilnil // no question is a state of the page
	}
	checked := newInvoiceForm(maps.Clone(f.values)) // the form itself keeps its lines and has no errors
	checked.dropEmptyLines()
	done, err := x.register(checked, checkOnly)
	if err != nil || !checked.ok() || done.blocked != nil || done.invoice.ID != "" {
		return nil, err
	}
	inv := done.command.Invoice
	return &issueQuestion{inv.Type, inv.Buyer.LegalName, inv.Buyer.TaxID, inv.Totals.Total}, nil
}

// issueBlocks returns what keeps a taxpayer from issuing: suspensions, and what it lacks.
func (x *request) issueBlocks(scope store.Scope, missing fiscal.Problems) (all []issueBlock, err error) {
	suspended, err := x.suspensions()
	if err != nil {
		return nil, err
	}
	page := ""
	if x.console.mayUse(x.viewer.Role(), http.MethodGet, taxpayersAddress+"/{id}") {
		page = taxpayersAddress + "/" + scope.TaxpayerID
	}
	if _, is := suspended[store.EnvironmentSubject(scope.Environment)]; is {
		all = append(all, issueBlock{Text: x.text("issue.block_environment")})
	}
	if _, is := suspended[store.TaxpayerSubject(scope.TaxpayerID)]; is {
		all = append(all, issueBlock{x.text("issue.block_taxpayer"), page})
	}
	steps := map[string]string{"taxpayer": "#profile", "certificate": "#certificate", "sequence": "#ranges"}
	for _, p := range missing {
		one := issueBlock{Text: capitalized(x.readinessText(p))}
		if page != "" {
			one.Address = page + steps[p.Field]
		}
		all = append(all, one)
	}
	return all, nil
}

// taxIDCheck checks the form and the check digit of the buyer's RNC or cédula.
func taxIDCheck(f *invoiceForm) string {
	id := taxIDText(f.Value("buyer.tax_id"))
	switch {
	case id == "":
		return "none"
	case !fiscal.IsRNC(id):
		if len(id) == 10 && strings.Trim(id, "0123456789") == "" && f.Value("ecf_type") == string(fiscal.Consumer) {
			return "foreign"
		}
		return "bad"
	case !fiscal.CheckDigitHolds(id):
		return "warn"
	}
	return "good"
}

// failFields puts problems at their fields, in the language of the person.
func (x *request) failFields(f *invoiceForm, problems fiscal.Problems) {
	for _, p := range problems {
		name, label := x.fieldOf(p.Field)
		text := x.problemText(p)
		one := fieldError{Name: name, Text: capitalized(text), AtField: capitalized(text)}
		if label != "" {
			one.Text = label + ": " + text
		}
		f.errors = append(f.errors, one)
	}
}

// capitalized returns a sentence with a capital letter at its beginning.
func capitalized(s string) string {
	first, size := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(first)) + s[size:]
}

var index = regexp.MustCompile(`\.(\d+)\.`)

// generic returns the path of a field without indexes.
func generic(path string) string { return index.ReplaceAllString(path, ".") }

// fieldOf returns the name of the control of a field and its label. The name is empty
// when the form has no control for the field; then the label is its path.
func (x *request) fieldOf(path string) (name, label string) {
	name = path
	if strings.HasPrefix(path, "lines.") && strings.Contains(path, ".taxes.") {
		before, after, _ := strings.Cut(path, ".taxes.")
		n, _, _ := strings.Cut(after, ".")
		name = before + ".taxes." + n + ".code" // the rate and the label follow from the code
	}
	key := "form.field." + generic(name)
	if !x.has(key) {
		if path == "lines" || path == "" || strings.HasPrefix(path, "declared_totals.") {
			return "", ""
		}
		return "", path
	}
	label = x.text(key)
	if n, _, ok := lineField(path); ok {
		label = x.text("issue.line_field", n+1, label)
	}
	return name, label
}

// problemText returns what is wrong with a field and what to do, in the language of the
// person: the text of the field where there is one, else the text of the code.
func (x *request) problemText(p fiscal.Problem) string {
	key := "form.problem." + p.Code
	if special := key + "." + generic(p.Field); x.has(special) {
		key = special
	}
	if !x.has(key) {
		return p.Message.In(x.language)
	}
	return x.text(key)
}

// readinessText returns what a taxpayer lacks to issue.
func (x *request) readinessText(p fiscal.Problem) string {
	if key := "form.ready." + p.Code; x.has(key) {
		return x.text(key)
	}
	return p.Message.In(x.language)
}

// Base returns the form for the function field.
func (f *invoiceForm) Base() *form { return f.form }

// LineFields returns the fields of a line, for the template.
func (f *invoiceForm) LineFields(d draftView) []lineFields {
	all := make([]lineFields, len(f.Lines))
	for n := range f.Lines {
		all[n] = lineFields{Form: f.form, Prefix: lineName(n, ""), Index: n, Number: n + 1, Only: len(f.Lines) == 1}
		if n < len(d.Lines) {
			all[n].Draft = d.Lines[n]
		}
		code := f.Value(lineName(n, "taxes.0.code"))
		_, known := fiscal.AdditionalTaxRate(code)
		all[n].OtherTax = code != "" && !known
		all[n].More = f.Value(lineName(n, "sku")) != "" || f.Value(lineName(n, "unit")) != "" || code != ""
	}
	return all
}

// lineFields is a line of the form.
type lineFields struct {
	Form     *form
	Prefix   string // of the names of its fields
	Index    int
	Number   int
	Only     bool // the form has no other line
	Draft    draftLine
	OtherTax bool // the tax is none of the authority's table
	More     bool // a field that is closed at first has a value
}

// TaxCode returns the code of the line's other tax.
func (l lineFields) TaxCode() string { return l.Form.Value(l.Prefix + "taxes.0.code") }

// lineError is an error of a field of a line. Label is the key of the field's label.
type lineError struct{ Name, Label, Text string }

// NarrowErrors returns the errors of the fields that stand next to each other. They are too
// narrow for a sentence, so the errors stand below all of them.
func (l lineFields) NarrowErrors() (all []lineError) {
	for _, name := range []string{"quantity", "unit_price", "billing_indicator", "discount.value"} {
		if text := l.Form.Error(l.Prefix + name); text != "" {
			all = append(all, lineError{l.Prefix + name, "form.field.lines." + name, text})
		}
	}
	return all
}

// hiddenField is a value of the invoice that has no control.
type hiddenField struct{ Name, Value string }

// Hidden returns the values of the invoice that the form keeps but does not show, like
// those of a copied invoice.
func (f *invoiceForm) Hidden() (all []hiddenField) {
	keep := func(name string) {
		if value := f.Value(name); value != "" {
			all = append(all, hiddenField{name, value})
		}
	}
	keep("currency")
	keep("copy")
	keep("template")
	for n := range f.Lines {
		keep(lineName(n, "line_id"))
		keep(lineName(n, "unit_code"))
		for i := range maxFormTaxes {
			prefix := lineName(n, "taxes."+strconv.Itoa(i)+".")
			if i > 0 {
				keep(prefix + "code")
			}
			keep(prefix + "label")
			keep(prefix + "rate_percent")
		}
	}
	return all
}

// HasMore reports whether a field of the closed part has a value or an error.
func (f *invoiceForm) HasMore(names ...string) bool {
	for _, name := range names {
		if f.Value(name) != "" || f.Error(name) != "" {
			return true
		}
	}
	return false
}

package console

import (
	"encoding/json"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

// invoiceForm is the form of an invoice. Its fields have the names of the contract, with
// dots and indexes.
type invoiceForm struct {
	*form
	Lines []int // the indexes of the lines: 0, 1, 2, …
}

// newInvoiceForm returns the form that a person has sent. Its lines are numbered from 0.
func newInvoiceForm(sent url.Values) *invoiceForm {
	f := &invoiceForm{form: newForm(url.Values{})}
	byLine := map[int]url.Values{}
	for name, values := range sent {
		n, rest, ok := lineField(name)
		if !ok {
			f.values[name] = values
			continue
		}
		if byLine[n] == nil {
			byLine[n] = url.Values{}
		}
		byLine[n][rest] = values
	}
	for i, n := range slices.Sorted(maps.Keys(byLine)) {
		if i >= fiscal.MaxLines {
			break
		}
		for rest, values := range byLine[n] {
			f.values[lineName(i, rest)] = values
		}
		f.Lines = append(f.Lines, i)
	}
	return f
}

// lineField splits the name of a field of a line into the index and the rest.
func lineField(name string) (n int, rest string, ok bool) {
	after, ok := strings.CutPrefix(name, "lines.")
	if !ok {
		return 0, "", false
	}
	index, rest, ok := strings.Cut(after, ".")
	n, err := strconv.Atoi(index)
	return n, rest, ok && err == nil && n >= 0 && n < 1_000_000 && len(index) <= 6
}

func lineName(n int, rest string) string { return "lines." + strconv.Itoa(n) + "." + rest }

// emptyInvoiceForm returns a form with one line.
func emptyInvoiceForm() *invoiceForm {
	f := &invoiceForm{form: newForm(url.Values{"ecf_type": {"31"}, "payment_type": {"cash"}})}
	f.addLine()
	return f
}

func (f *invoiceForm) set(name, value string) { f.values.Set(name, value) }

// setAll sets the fields that have a value.
func (f *invoiceForm) setAll(prefix string, fields map[string]string) {
	for name, value := range fields {
		if value != "" {
			f.set(prefix+name, value)
		}
	}
}

// addLine adds an empty line.
func (f *invoiceForm) addLine() {
	if len(f.Lines) >= fiscal.MaxLines {
		return
	}
	n := len(f.Lines)
	f.Lines = append(f.Lines, n)
	f.setAll("", map[string]string{lineName(n, "quantity"): "1", lineName(n, "item_kind"): "product", lineName(n, "billing_indicator"): "1"})
}

// removeLine removes a line and numbers those after it again. A form keeps one line.
func (f *invoiceForm) removeLine(index string) {
	n, err := strconv.Atoi(index)
	if err != nil || n < 0 || n >= len(f.Lines) {
		return
	}
	f.removeLines(map[int]bool{n: true})
	if len(f.Lines) == 0 {
		f.addLine()
	}
}

// dropEmptyLines removes the lines in which a person has written nothing, but not the
// only one.
func (f *invoiceForm) dropEmptyLines() {
	empty := map[int]bool{}
	for n := range f.Lines {
		if f.Value(lineName(n, "description")) == "" && f.Value(lineName(n, "unit_price")) == "" && f.Value(lineName(n, "sku")) == "" {
			empty[n] = true
		}
	}
	if len(empty) == len(f.Lines) {
		delete(empty, 0)
	}
	if len(empty) > 0 {
		f.removeLines(empty)
	}
}

// removeLines removes lines and numbers the others again.
func (f *invoiceForm) removeLines(removed map[int]bool) {
	for name := range f.values {
		if n, _, ok := lineField(name); ok && removed[n] {
			delete(f.values, name)
		}
	}
	*f = *newInvoiceForm(f.values)
}

// body returns the form as the JSON object of the contract. A field without a value is
// left out.
func (f *invoiceForm) body(totals fiscal.Totals) map[string]any {
	b := map[string]any{
		"currency":        "DOP",
		"buyer":           f.buyer(),
		"declared_totals": totals.Declared(),
	}
	f.texts(b, "", "external_id", "ecf_type", "issue_date", "due_date", "currency", "language", "payment_type",
		"purchase_order", "payment_terms", "notes")
	lines := make([]any, len(f.Lines))
	for i := range f.Lines {
		lines[i] = f.line(i)
	}
	b["lines"] = lines
	withheld := map[string]any{}
	for _, name := range withholdingFields() {
		if value := f.Value("estimated_withholdings." + name); value != "" {
			withheld[name] = decimalText(value)
		}
	}
	if len(withheld) > 0 {
		b["estimated_withholdings"] = withheld
	}
	return b
}

func withholdingFields() []string {
	return []string{"income_tax_amount", "income_tax_base_amount", "income_tax_rate_percent", "itbis_amount", "itbis_base_amount", "itbis_rate_percent"}
}

// texts copies the fields that have a value.
func (f *invoiceForm) texts(to map[string]any, prefix string, names ...string) {
	for _, name := range names {
		if value := f.Value(prefix + name); value != "" {
			to[name] = strings.ReplaceAll(value, "\r\n", "\n") // browsers end lines so
		}
	}
}

func (f *invoiceForm) buyer() map[string]any {
	b := map[string]any{}
	f.texts(b, "buyer.", "legal_name", "email", "phone")
	if id := taxIDText(f.Value("buyer.tax_id")); id != "" {
		b["tax_id"] = id
	}
	address := map[string]any{}
	f.texts(address, "buyer.address.", "line1", "line2", "city", "province_or_state", "postal_code", "country_code")
	if len(address) > 0 && (len(address) > 1 || address["country_code"] == nil) {
		if address["country_code"] == nil {
			address["country_code"] = fiscal.DominicanRepublic
		}
		b["address"] = address
	}
	return b
}

func (f *invoiceForm) line(n int) map[string]any {
	prefix := lineName(n, "")
	l := map[string]any{"line_id": strconv.Itoa(n + 1), "discount": nil, "taxes": f.taxes(n)}
	f.texts(l, prefix, "line_id", "description", "sku", "unit", "item_kind")
	for _, name := range []string{"quantity", "unit_price"} {
		if value := f.Value(prefix + name); value != "" {
			l[name] = decimalText(value)
		}
	}
	for _, name := range []string{"billing_indicator", "unit_code"} {
		if value := f.Value(prefix + name); value != "" {
			l[name] = value
			if _, err := strconv.ParseUint(value, 10, 16); err == nil {
				l[name] = json.Number(strings.TrimLeft(value[:len(value)-1], "0") + value[len(value)-1:])
			}
		}
	}
	if value := f.Value(prefix + "discount.value"); value != "" {
		l["discount"] = map[string]any{"kind": "percentage", "value": decimalText(value)}
	}
	return l
}

// taxes returns the taxes of a line. Where a form has only the code of a tax of the
// authority's table, its rate and its label follow from the code.
func (f *invoiceForm) taxes(n int) []any {
	all := []any{}
	for i := range maxFormTaxes {
		prefix := lineName(n, "taxes."+strconv.Itoa(i)+".")
		tax := map[string]any{}
		f.texts(tax, prefix, "code", "label")
		if rate := f.Value(prefix + "rate_percent"); rate != "" {
			tax["rate_percent"] = decimalText(rate)
		}
		code, _ := tax["code"].(string)
		if f.values.Has(prefix+"code") && code == "" {
			continue // a person has chosen no tax
		}
		if rate, ok := fiscal.AdditionalTaxRate(code); ok && len(tax) == 1 {
			tax["label"], tax["rate_percent"] = code, rate.String()
		}
		if len(tax) > 0 {
			all = append(all, tax)
		}
	}
	return all
}

// maxFormTaxes is how many taxes of a line a form may have, as the contract allows.
const maxFormTaxes = 12

var (
	grouping  = regexp.MustCompile(`^\d{1,3}(,\d{3})+(\.\d+)?$`)
	taxIDSign = strings.NewReplacer("-", "", " ", "", ".", "")
)

// decimalText reads a number as people write it, RD$ 1,180.00, and returns it in the form
// of the contract. It returns any other text as it is.
func decimalText(s string) string {
	s = strings.TrimSpace(strings.TrimPrefix(strings.TrimPrefix(s, "RD"), "$"))
	if grouping.MatchString(s) {
		return strings.ReplaceAll(s, ",", "")
	}
	return s
}

// taxIDText returns an RNC or a cédula without the signs that people write between its
// digits.
func taxIDText(s string) string {
	if plain := taxIDSign.Replace(s); plain != "" && strings.Trim(plain, "0123456789") == "" {
		return plain
	}
	return s
}

// copiedForm returns a form with everything of an invoice but what must be new.
func copiedForm(inv *fiscal.Invoice) *invoiceForm {
	f := &invoiceForm{form: newForm(url.Values{})}
	f.setAll("", map[string]string{
		"ecf_type": string(inv.Type), "payment_type": string(inv.PaymentType), "language": inv.Language,
		"purchase_order": inv.PurchaseOrder, "payment_terms": inv.PaymentTerms, "notes": inv.Notes,
	})
	if !inv.DueDate.IsZero() {
		f.set("due_date", inv.DueDate.String())
	}
	f.setAll("buyer.", map[string]string{
		"legal_name": inv.Buyer.LegalName, "tax_id": inv.Buyer.TaxID, "email": inv.Buyer.Email, "phone": inv.Buyer.Phone,
	})
	if a := inv.Buyer.Address; a != nil {
		f.setAll("buyer.address.", map[string]string{
			"line1": a.Line1, "line2": a.Line2, "city": a.City, "province_or_state": a.ProvinceOrState,
			"postal_code": a.PostalCode, "country_code": a.CountryCode,
		})
	}
	for i, l := range inv.Lines {
		f.Lines = append(f.Lines, i)
		f.copyLine(lineName(i, ""), l)
	}
	if w := inv.Withholdings; w != nil {
		f.copyWithholding("income_tax_", w.IncomeTax)
		f.copyWithholding("itbis_", w.ITBIS)
	}
	return f
}

func (f *invoiceForm) copyLine(prefix string, l fiscal.Line) {
	f.setAll(prefix, map[string]string{
		"line_id": l.ID, "description": l.Description, "sku": l.SKU, "unit": l.Unit, "item_kind": string(l.ItemKind),
		"quantity": l.Quantity.String(), "unit_price": l.UnitPrice.String(), "billing_indicator": strconv.Itoa(int(l.Indicator)),
	})
	if l.UnitCode != 0 {
		f.set(prefix+"unit_code", strconv.Itoa(l.UnitCode))
	}
	if !l.DiscountPercent.IsZero() {
		f.set(prefix+"discount.value", l.DiscountPercent.String())
	}
	for i, code := range l.AdditionalTaxes {
		f.set(prefix+"taxes."+strconv.Itoa(i)+".code", code)
	}
}

// restoreUnknownTaxes puts the taxes of a copied invoice that are not known into the form as
// they were sent. The form is then refused until a person has said what they are.
func (f *invoiceForm) restoreUnknownTaxes(inv *fiscal.Invoice) {
	for n, l := range inv.Lines {
		var all []map[string]string
		for _, t := range l.Taxes {
			if !fiscal.KnownTax(t.Code) {
				all = append(all, map[string]string{"code": t.Code, "label": t.Label, "rate_percent": t.Rate.String()})
			}
		}
		if len(all) == 0 {
			continue
		}
		for _, code := range l.AdditionalTaxes {
			all = append(all, map[string]string{"code": code})
		}
		for i, fields := range all {
			f.setAll(lineName(n, "taxes."+strconv.Itoa(i)+"."), fields)
		}
	}
}

func (f *invoiceForm) copyWithholding(prefix string, w fiscal.Withholding) {
	f.set("estimated_withholdings."+prefix+"amount", w.Amount.String())
	if w.HasBase {
		f.set("estimated_withholdings."+prefix+"base_amount", w.Base.String())
	}
	if w.HasRate {
		f.set("estimated_withholdings."+prefix+"rate_percent", w.Rate.String())
	}
}

package console

import (
	"cmp"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/ecf"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/pipeline"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/taxpayer"
)

const (
	taxpayersAddress = "/console/taxpayers"
	taxpayerRows     = 200     // of the list
	maxUpload        = 4 << 20 // of a form with a file
)

func (c *Console) taxpayerPages() []page {
	see, act := overseers(), operators()
	one, shown := taxpayersAddress+"/{id}", (*request).taxpayer
	upload := func(address string, handle func(*request) error) page {
		p := post(address, see, act, handle)
		p.maxBody = maxUpload
		return p
	}
	return []page{
		get(taxpayersAddress, see, c.showTaxpayers),
		get(taxpayersAddress+"/new", act, c.showNewTaxpayer),
		upload(taxpayersAddress, c.createTaxpayer),
		get(one, see, c.showTaxpayer),
		upload(one, c.updateTaxpayer),
		get(one+"/logo", see, on(shown, c.showLogo)),
		upload(one+"/logo", c.changeLogo),
		upload(one+"/certificates", on(shown, c.importCertificate)),
		post(one+"/certificates/{certificate}/revoke", see, act, on(shown, c.revokeCertificate)),
		post(one+"/ranges", see, act, on(shown, c.addRange)),
		post(one+"/suspend", see, act, on(shown, c.suspendTaxpayer)),
		post(one+"/resume", see, act, on(shown, c.resumeTaxpayer)),
	}
}

// documentTypes returns the types of documents that taxpayers issue.
func documentTypes() []fiscal.Type { return []fiscal.Type{fiscal.FiscalCredit, fiscal.Consumer} }

// taxpayersView is the data of the page of all taxpayers.
type taxpayersView struct {
	Form      *form
	Needs     []option
	Filtered  bool
	Sandbox   bool
	Taxpayers []taxpayerRow
	More      bool // there are more taxpayers than the page shows
}

// taxpayerRow is a taxpayer with what it needs to issue.
type taxpayerRow struct {
	store.Taxpayer
	Suspended   bool
	Missing     int // codes of what is missing, of all types
	Certificate *certificateView
	Numbers     []numbersView // of each type
}

// Needs reports whether the taxpayer needs a person because of something: its certificate
// ends, it has few numbers of a range, or anything is missing. An empty text asks nothing.
func (r taxpayerRow) Needs(what string) bool {
	switch what {
	case "":
		return true
	case "certificate":
		return r.Certificate != nil && r.Certificate.Tone != good
	case "ranges":
		return slices.ContainsFunc(r.Numbers, func(n numbersView) bool { return n.Ranges > 0 && n.Tone != good })
	}
	return r.Missing > 0 || r.Suspended
}

// numbersView is how many numbers of a type are left.
type numbersView struct {
	Type   fiscal.Type
	Ranges int // which the taxpayer has
	Left   int64
	Tone   tone
}

func newNumbersView(t fiscal.Type, ranges []store.NumberRange, now time.Time) numbersView {
	v := numbersView{Type: t, Ranges: len(ranges), Tone: good}
	for _, r := range ranges {
		if r.Left() > 0 && r.FencedAt.IsZero() && !r.Expired(fiscal.DateOf(now)) {
			v.Left += r.Left()
		}
	}
	switch {
	case v.Left == 0:
		v.Tone = bad
	case v.Left < fiscal.LowNumbers:
		v.Tone = warn
	}
	return v
}

// certificateView is a certificate with the days that are left.
type certificateView struct {
	store.Certificate
	State store.CertificateState
	Days  int // until it ends
	Tone  tone
}

func newCertificateView(c store.Certificate, now time.Time) certificateView {
	v := certificateView{Certificate: c, State: c.State(now), Days: int(c.NotAfter.Sub(now) / (24 * time.Hour)), Tone: good}
	switch {
	case v.State != store.CertificateValid:
		v.Tone = bad
	case c.NotAfter.Sub(now) < fiscal.EndsSoon:
		v.Tone = warn
	}
	return v
}

// StateKey returns the text of the state.
func (v certificateView) StateKey() string {
	switch {
	case v.State == store.CertificateExpired:
		return "taxpayers.cert_expired"
	case v.State == store.CertificateNotYetValid:
		return "taxpayers.cert_future"
	case v.State == store.CertificateRevoked:
		return "taxpayers.cert_revoked"
	case v.Tone == warn:
		return "taxpayers.cert_ending"
	}
	return "taxpayers.cert_valid"
}

// showTaxpayers lists the taxpayers with what is missing. The filters are in the query
// string: q, a part of the name or of the RNC, and needs.
func (c *Console) showTaxpayers(x *request) error {
	all, err := c.o.Store.TaxpayersWithoutLogos(x.Context())
	if err != nil {
		return err
	}
	facts, err := x.allFacts(all)
	if err != nil {
		return err
	}
	suspended, err := x.suspensions()
	if err != nil {
		return err
	}
	f := newForm(x.URL.Query())
	words := strings.ToLower(f.Value("q"))
	v := taxpayersView{Form: f, Filtered: words != "" || f.Value("needs") != "", Sandbox: c.o.Environment == fiscal.Sandbox}
	v.Needs = []option{
		{"", x.text("taxpayers.needs_all")}, {"anything", x.text("taxpayers.needs_anything")}, {"certificate", x.text("taxpayers.needs_certificate")},
		{"ranges", x.text("taxpayers.needs_ranges")},
	}
	now := c.o.Now()
	for i, t := range all {
		if !x.viewer.Sees(t.ID) || !strings.Contains(strings.ToLower(t.LegalName+" "+t.TradeName+" "+t.RNC), words) {
			continue
		}
		_, is := suspended[store.TaxpayerSubject(t.ID)]
		row := newTaxpayerRow(facts[i], is, now)
		if !row.Needs(f.Value("needs")) {
			continue
		}
		if len(v.Taxpayers) == taxpayerRows {
			v.More = true
			break
		}
		v.Taxpayers = append(v.Taxpayers, row)
	}
	return x.render("taxpayers", x.text("taxpayers.title"), v)
}

func newTaxpayerRow(f pipeline.Facts, suspended bool, now time.Time) taxpayerRow {
	row := taxpayerRow{Taxpayer: f.Taxpayer, Suspended: suspended}
	missing := map[string]bool{}
	for _, kind := range documentTypes() {
		for _, p := range f.Missing(kind, now) {
			code := p.Code
			if strings.HasPrefix(code, "sequence.") {
				code += string(kind)
			}
			missing[code] = true
		}
		row.Numbers = append(row.Numbers, newNumbersView(kind, f.NumberRanges[kind], now))
	}
	row.Missing = len(missing)
	if signing, ok := store.SigningCertificate(f.Certificates, now); ok {
		v := newCertificateView(signing, now)
		row.Certificate = &v
	}
	return row
}

// allFacts reads the facts about all taxpayers with a few statements.
func (x *request) allFacts(all []store.Taxpayer) ([]pipeline.Facts, error) {
	certificates, err := x.console.o.Store.Certificates(x.Context())
	if err != nil {
		return nil, err
	}
	ranges, err := x.console.o.Store.NumberRanges(x.Context())
	if err != nil {
		return nil, err
	}
	env := x.console.o.Environment
	byID := make(map[string]*pipeline.Facts, len(all))
	facts := make([]pipeline.Facts, len(all))
	for i, t := range all {
		facts[i] = pipeline.Facts{Environment: env, Taxpayer: t, NumberRanges: map[fiscal.Type][]store.NumberRange{}}
		byID[t.ID] = &facts[i]
	}
	for _, c := range certificates {
		if f := byID[c.TaxpayerID]; f != nil && c.Environment == env {
			f.Certificates = append(f.Certificates, c)
		}
	}
	for _, r := range ranges {
		if f := byID[r.TaxpayerID]; f != nil && r.Environment == env {
			f.NumberRanges[r.Type] = append(f.NumberRanges[r.Type], r)
		}
	}
	return facts, nil
}

func (x *request) suspensions() (map[store.Subject]store.Suspension, error) {
	all, err := x.console.o.Store.Suspensions(x.Context())
	bySubject := make(map[store.Subject]store.Suspension, len(all))
	for _, one := range all {
		bySubject[one.Subject] = one
	}
	return bySubject, err
}

// profileView is the form of a profile.
type profileView struct {
	Form      *form
	Phones    []string // three, empty ones at the end
	Provinces []option
	Incomes   []option
	Formats   []option
	Stored    []fact // what another person has stored, where it differs from the form
	SameRNC   bool   // another taxpayer has the RNC: the person must confirm
	New       bool
}

// Phone returns a telephone number by its position.
func (v profileView) Phone(i int) string { return v.Phones[i] }

func (x *request) newProfileView(f *form, phones []string) profileView {
	v := profileView{Form: f, Phones: append(phones[:len(phones):len(phones)], "", "", "")[:3]}
	v.Provinces = []option{{"", "–"}}
	for _, p := range ecf.Provinces() {
		v.Provinces = append(v.Provinces, option{p.Code, p.Name})
	}
	v.Incomes = []option{
		{"01", x.text("taxpayers.income_operating")}, {"02", x.text("taxpayers.income_financial")}, {"03", x.text("taxpayers.income_extraordinary")},
		{"04", x.text("taxpayers.income_rent")}, {"05", x.text("taxpayers.income_assets")}, {"06", x.text("taxpayers.income_other")},
	}
	v.Formats = []option{{"letter", x.text("taxpayers.format_letter")}, {"receipt", x.text("taxpayers.format_receipt")}, {"receipt58", x.text("taxpayers.format_narrow")}}
	return v
}

// profileForm returns the form with the profile of a taxpayer.
func profileForm(t store.Taxpayer) *form {
	return newForm(url.Values{
		"rnc": {t.RNC}, "legal_name": {t.LegalName}, "trade_name": {t.TradeName}, "branch": {t.Branch}, "address": {t.Address},
		"municipality": {t.Municipality}, "province": {t.Province}, "email": {t.Email}, "website": {t.Website},
		"economic_activity": {t.EconomicActivity}, "income_type": {t.IncomeType}, "electronic_since": {t.ElectronicSince},
		"page_format": {cmp.Or(t.PageFormat, store.LetterFormat)}, "phone": t.Phones, "updated_at": {lastChange(t)},
	})
}

// lastChange returns the time of the last change of a taxpayer, in microseconds. A form has
// it, so that it replaces no change which its writer has not seen.
func lastChange(t store.Taxpayer) string { return strconv.FormatInt(t.UpdatedAt.UnixMicro(), 10) }

// readProfile sets the fields of a taxpayer that the form has, and records the errors at
// their fields. A form without a field leaves it as it is.
func (x *request) readProfile(f *form, t *store.Taxpayer) error {
	for name, field := range map[string]*string{
		"rnc": &t.RNC, "legal_name": &t.LegalName, "trade_name": &t.TradeName, "branch": &t.Branch, "address": &t.Address,
		"municipality": &t.Municipality, "province": &t.Province, "email": &t.Email, "website": &t.Website,
		"economic_activity": &t.EconomicActivity, "income_type": &t.IncomeType, "electronic_since": &t.ElectronicSince, "page_format": &t.PageFormat,
	} {
		if _, sent := x.PostForm[name]; sent {
			*field = f.Value(name)
		}
	}
	if phones, sent := x.PostForm["phone"]; sent {
		t.Phones = []string{}
		for _, phone := range phones {
			if phone = strings.TrimSpace(phone); phone != "" {
				t.Phones = append(t.Phones, phone)
			}
		}
	}
	t.IncomeType = cmp.Or(t.IncomeType, "01")
	// A person knows the name of the municipality, not its code.
	if found := ecf.FindMunicipalities(t.Municipality); t.Municipality != "" && len(found) == 1 {
		t.Municipality, t.Province = found[0].Code, cmp.Or(t.Province, found[0].Province)
	}
	var problems fiscal.Problems
	if err := taxpayer.Check(*t); err != nil && !errors.As(err, &problems) {
		return err
	}
	for _, p := range problems {
		name, _, _ := strings.Cut(p.Field, ".")
		if name == "phones" {
			name = "phone"
		}
		if f.Error(name) == "" {
			f.fail(name, x.text(cmp.Or(profileErrors[name], "form.required")))
		}
	}
	return nil
}

// profileErrors say what each field of a profile must be.
var profileErrors = map[string]string{
	"rnc": "taxpayers.wrong_rnc", "legal_name": "taxpayers.wrong_legal_name", "trade_name": "taxpayers.wrong_trade_name", "branch": "taxpayers.wrong_branch",
	"address": "taxpayers.wrong_address", "municipality": "taxpayers.wrong_municipality", "province": "taxpayers.wrong_province", "phone": "taxpayers.wrong_phone",
	"email": "taxpayers.wrong_email", "website": "taxpayers.wrong_website", "economic_activity": "taxpayers.wrong_activity", "income_type": "taxpayers.wrong_income",
	"electronic_since": "taxpayers.wrong_since", "page_format": "taxpayers.wrong_format",
}

func (c *Console) showNewTaxpayer(x *request) error {
	v := x.newProfileView(newForm(url.Values{"income_type": {"01"}, "page_format": {store.LetterFormat}}), nil)
	v.New = true
	return x.render("taxpayer-new", x.text("taxpayers.new"), v)
}

// createTaxpayer stores a new taxpayer. When another taxpayer has the RNC, which is rare,
// the person must confirm: so a form that is sent twice creates one taxpayer.
func (c *Console) createTaxpayer(x *request) error {
	if err := x.parseUpload(); err != nil {
		return err
	}
	f := x.sentForm()
	now := c.o.Now()
	made := store.Taxpayer{ID: store.NewID(), Phones: []string{}, CreatedAt: now, UpdatedAt: now}
	if err := x.readProfile(f, &made); err != nil {
		return err
	}
	logo, err := x.readLogo(f)
	if err != nil {
		return err
	}
	made.Logo = logo
	same, err := x.sameRNC(made)
	if err != nil {
		return err
	}
	if same && f.Value("same_rnc") == "" {
		f.fail("rnc", x.text("taxpayers.same_rnc"))
	}
	if !f.ok() {
		v := x.newProfileView(f, made.Phones)
		v.New, v.SameRNC = true, same
		return x.renderStatus(http.StatusUnprocessableEntity, "taxpayer-new", x.text("taxpayers.new"), v)
	}
	if err := c.o.Store.Update(x.Context(), func(tx *store.Tx) error { return tx.CreateTaxpayer(x.Context(), made) }); err != nil {
		return err
	}
	return x.done(taxpayersAddress+"/"+made.ID, "taxpayers.create")
}

// sameRNC reports whether another taxpayer has the RNC.
func (x *request) sameRNC(one store.Taxpayer) (bool, error) {
	all, err := x.console.o.Store.TaxpayersWithoutLogos(x.Context())
	for _, other := range all {
		if other.RNC == one.RNC && other.ID != one.ID {
			return true, err
		}
	}
	return false, err
}

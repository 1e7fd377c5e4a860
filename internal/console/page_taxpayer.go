package console

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/pipeline"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// taxpayerDetail is the data of the page of one taxpayer: what it needs to issue, as steps.
type taxpayerDetail struct {
	Taxpayer   store.Taxpayer
	Suspension *store.Suspension // nil: not suspended
	Closed     bool              // the environment is suspended
	Sandbox    bool
	Types      []typeView

	Profile      step
	ProfileForm  profileView
	Logo         step
	LogoForm     *form
	Certificate  step
	Certificates []certificateView // the newest first
	CertForm     *form
	Ranges       step
	Numbers      []numbersView
	RangeList    []rangeView
	RangeForm    *form
	Trust        step
	Receiver     step
	ReceiverURLs []receiverURL
	Open         string // the step whose form is open
}

// step is one thing that a taxpayer needs.
type step struct {
	Tone    tone
	WordKey string // state in a word
	Text    string // what is there, or what is missing
}

// Missing reports whether the step keeps the taxpayer from issuing.
func (s step) Missing() bool { return s.Tone == bad }

// typeView says whether a taxpayer can issue a type of document.
type typeView struct {
	Type    fiscal.Type
	NameKey string
	Ready   bool
	Missing []string // in words
}

// rangeView is a number range with its state in words.
type rangeView struct {
	store.NumberRange
	Tone    tone
	WordKey string
	Percent int64 // of the numbers that are used
}

// receiverURL is an address of a service that other taxpayers call.
type receiverURL struct{ ID, Label, Value string }

func (c *Console) showTaxpayer(x *request) error {
	return x.renderTaxpayer(http.StatusOK, taxpayerDetail{})
}

// shownTaxpayer is the taxpayer of an address.
type shownTaxpayer struct {
	store.Scope
	stored store.Taxpayer
}

// taxpayer returns the taxpayer of the address, if the person sees it.
func (x *request) taxpayer() (one shownTaxpayer, err error) {
	if one.Scope, err = x.viewer.Scope(x.PathValue("id")); err != nil {
		return one, err
	}
	one.stored, err = x.console.o.Store.Taxpayer(x.Context(), one.TaxpayerID)
	return one, err
}

// renderTaxpayer renders the page. The caller sets the form that has errors, and Open.
func (x *request) renderTaxpayer(status int, v taxpayerDetail) error {
	one, err := x.taxpayer()
	if err != nil {
		return err
	}
	scope := one.Scope
	facts, err := pipeline.ReadFacts(x.Context(), x.console.o.Store, scope)
	if err != nil {
		return err
	}
	suspended, err := x.suspensions()
	if err != nil {
		return err
	}
	v.Taxpayer, v.Sandbox = facts.Taxpayer, scope.Environment == fiscal.Sandbox
	if one, is := suspended[store.TaxpayerSubject(scope.TaxpayerID)]; is {
		v.Suspension = &one
	}
	_, v.Closed = suspended[store.EnvironmentSubject(scope.Environment)]
	x.addTypes(&v, facts)
	x.addProfile(&v)
	x.addCertificates(&v, facts)
	x.addRanges(&v, facts)
	x.addNetwork(&v)
	return x.renderStatus(status, "taxpayer", v.Taxpayer.LegalName, v)
}

// missingTexts are the texts of what keeps a taxpayer from issuing, by code.
var missingTexts = map[string]string{
	"taxpayer.profile_incomplete": "taxpayers.missing_profile", "certificate.missing": "taxpayers.missing_certificate",
	"certificate.expired": "taxpayers.missing_cert_expired", "certificate.not_yet_valid": "taxpayers.missing_cert_future", "certificate.revoked": "taxpayers.missing_cert_revoked",
	"sequence.missing": "taxpayers.missing_range", "sequence.exhausted": "taxpayers.missing_range_used", "sequence.expired": "taxpayers.missing_range_expired",
	"sequence.fenced": "taxpayers.missing_range_fenced",
}

func (x *request) addTypes(v *taxpayerDetail, facts pipeline.Facts) {
	names := map[fiscal.Type]string{fiscal.FiscalCredit: "taxpayers.type_credit", fiscal.Consumer: "taxpayers.type_consumer"}
	for _, kind := range documentTypes() {
		one := typeView{Type: kind, NameKey: names[kind]}
		for _, p := range facts.Missing(kind, x.console.o.Now()) {
			if key := missingTexts[p.Code]; key != "" {
				one.Missing = append(one.Missing, x.text(key))
			} else {
				one.Missing = append(one.Missing, p.Message.In(x.language))
			}
		}
		one.Ready = len(one.Missing) == 0 && v.Suspension == nil && !v.Closed
		v.Types = append(v.Types, one)
	}
}

func (x *request) addProfile(v *taxpayerDetail) {
	v.Profile = step{good, "taxpayers.word_done", v.Taxpayer.Address}
	if v.Taxpayer.Address == "" {
		v.Profile = step{bad, "taxpayers.word_missing", x.text("taxpayers.profile_missing")}
		if v.Sandbox {
			v.Profile.Tone, v.Profile.WordKey = neutral, "taxpayers.word_optional"
		}
	}
	if v.ProfileForm.Form == nil {
		v.ProfileForm = x.newProfileView(profileForm(v.Taxpayer), v.Taxpayer.Phones)
	}
	v.Logo = step{neutral, "taxpayers.word_optional", x.text("taxpayers.logo_missing")}
	if len(v.Taxpayer.Logo) > 0 {
		v.Logo = step{good, "taxpayers.word_done", x.text("taxpayers.logo_there")}
	}
}

func (x *request) addCertificates(v *taxpayerDetail, facts pipeline.Facts) {
	now := x.console.o.Now()
	for _, c := range slices.Backward(facts.Certificates) {
		v.Certificates = append(v.Certificates, newCertificateView(c, now))
	}
	signing, ok := store.SigningCertificate(facts.Certificates, now)
	switch shown := newCertificateView(signing, now); {
	case v.Sandbox:
		v.Certificate = step{neutral, "taxpayers.word_not_needed", x.text("taxpayers.certificate_sandbox")}
	case !ok:
		v.Certificate = step{bad, "taxpayers.word_missing", x.text("taxpayers.certificate_missing")}
	case shown.State != store.CertificateValid:
		v.Certificate = step{bad, shown.StateKey(), x.text("taxpayers.certificate_missing")}
	case shown.Tone == warn:
		v.Certificate = step{warn, "taxpayers.cert_ending", x.text("taxpayers.certificate_ending", shown.Days)}
	default:
		v.Certificate = step{good, "taxpayers.word_done", x.text("taxpayers.certificate_valid", shown.Days)}
	}
}

func (x *request) addRanges(v *taxpayerDetail, facts pipeline.Facts) {
	now := x.console.o.Now()
	today := fiscal.DateOf(now)
	worst, without := good, []string{}
	for _, kind := range documentTypes() {
		left := newNumbersView(kind, facts.NumberRanges[kind], now)
		v.Numbers = append(v.Numbers, left)
		switch {
		case left.Tone == bad:
			without = append(without, string(kind))
		case left.Tone == warn && worst == good:
			worst = warn
		}
		for _, r := range facts.NumberRanges[kind] {
			v.RangeList = append(v.RangeList, newRangeView(r, today))
		}
	}
	switch {
	case v.Sandbox:
		v.Ranges = step{neutral, "taxpayers.word_not_needed", x.text("taxpayers.ranges_sandbox")}
	case len(without) == len(documentTypes()):
		v.Ranges = step{bad, "taxpayers.word_missing", x.text("taxpayers.ranges_missing")}
	case len(without) > 0:
		v.Ranges = step{warn, "taxpayers.word_partly", x.text("taxpayers.ranges_partly", strings.Join(without, ", "))}
	case worst == warn:
		v.Ranges = step{warn, "taxpayers.word_low", x.text("taxpayers.ranges_low")}
	default:
		v.Ranges = step{good, "taxpayers.word_done", x.text("taxpayers.ranges_there")}
	}
	if v.RangeForm == nil {
		v.RangeForm = newForm(url.Values{"type": {string(fiscal.FiscalCredit)}})
	}
}

func newRangeView(r store.NumberRange, today fiscal.Date) rangeView {
	v := rangeView{NumberRange: r, Tone: good, WordKey: "taxpayers.range_open", Percent: (r.Next - r.First) * 100 / (r.Last - r.First + 1)}
	switch {
	case !r.FencedAt.IsZero():
		v.Tone, v.WordKey = bad, "taxpayers.range_fenced"
	case r.Left() <= 0:
		v.Tone, v.WordKey = neutral, "taxpayers.range_used"
	case r.Expired(today):
		v.Tone, v.WordKey = bad, "taxpayers.range_expired"
	case r.Left() < fiscal.LowNumbers:
		v.Tone, v.WordKey = warn, "taxpayers.range_low"
	}
	return v
}

// addNetwork adds the steps that are settings of the service and of the authority.
func (x *request) addNetwork(v *taxpayerDetail) {
	c := x.console
	switch {
	case v.Sandbox:
		v.Trust = step{neutral, "taxpayers.word_not_needed", x.text("taxpayers.trust_sandbox")}
		v.Receiver = step{neutral, "taxpayers.word_not_needed", x.text("taxpayers.receiver_sandbox")}
		return
	case c.o.Trusted:
		v.Trust = step{good, "taxpayers.word_done", x.text("taxpayers.trust_there")}
	default:
		v.Trust = step{warn, "taxpayers.word_missing", x.text("taxpayers.trust_missing")}
	}
	v.Receiver = step{good, "taxpayers.word_ready", x.text("taxpayers.receiver_text")}
	if u, err := url.Parse(c.o.ReceiverURL); err != nil || u.Scheme != "https" {
		v.Receiver = step{warn, "taxpayers.word_check", x.text("taxpayers.receiver_private")}
	}
	v.ReceiverURLs = []receiverURL{
		{"receiver_base", x.text("taxpayers.receiver_base"), c.o.ReceiverURL},
		{"receiver_authentication", x.text("taxpayers.receiver_authentication"), c.o.ReceiverURL + "/fe/autenticacion"},
		{"receiver_reception", x.text("taxpayers.receiver_reception"), c.o.ReceiverURL + "/fe/recepcion/api/ecf"},
		{"receiver_approval", x.text("taxpayers.receiver_approval"), c.o.ReceiverURL + "/fe/aprobacioncomercial/api/ecf"},
	}
}

package console

import (
	"cmp"
	"context"
	"errors"
	"io"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/access"
	"github.com/fiscalhub/fiscalhub/internal/audit"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/taxpayer"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

// maxFile is the size of the largest file of a form, in bytes.
const maxFile = 1 << 20

// parseUpload reads a form with files into memory. A private key is never written to a
// file.
func (x *request) parseUpload() error {
	err := x.ParseMultipartForm(maxUpload) //nolint:gosec // request.run limits the body
	if err != nil && !errors.Is(err, http.ErrNotMultipart) || !isText(x.PostForm) {
		return errBadRequest
	}
	return nil
}

// upload returns the content of a file of the form: nothing when the person chose none. A
// file that is too large is an error of the field.
func (x *request) upload(f *form, name string) ([]byte, error) {
	file, _, err := x.FormFile(name)
	if errors.Is(err, http.ErrMissingFile) || errors.Is(err, http.ErrNotMultipart) {
		return nil, nil
	}
	if err != nil {
		return nil, errBadRequest
	}
	content, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err = errors.Join(err, file.Close()); err != nil {
		return nil, errBadRequest
	}
	if len(content) > maxFile {
		f.fail(name, x.text("taxpayers.file_large"))
		return nil, nil
	}
	return content, nil
}

// readLogo returns the logo of the form: nothing when the person chose none.
func (x *request) readLogo(f *form) ([]byte, error) {
	logo, err := x.upload(f, "logo")
	if err != nil || len(logo) == 0 {
		return nil, err
	}
	if taxpayer.CheckLogo(logo) != nil {
		f.fail("logo", x.text("taxpayers.wrong_logo"))
	}
	return logo, nil
}

// taxpayerForm reads a form about a taxpayer: the taxpayer as it is stored, the fields, and
// the logo when the form has one.
func (x *request) taxpayerForm() (found store.Taxpayer, f *form, logo []byte, err error) {
	one, err := x.taxpayer()
	if err == nil {
		err = x.parseUpload()
	}
	if err != nil {
		return one.stored, nil, nil, err
	}
	f = x.sentForm()
	logo, err = x.readLogo(f)
	return one.stored, f, logo, err
}

// updateTaxpayer changes the profile, and the logo when the form has one.
func (c *Console) updateTaxpayer(x *request) error {
	found, f, logo, err := x.taxpayerForm()
	if err != nil {
		return err
	}
	changed := found
	if err := x.readProfile(f, &changed); err != nil {
		return err
	}
	if !f.ok() {
		return x.renderTaxpayer(http.StatusUnprocessableEntity, taxpayerDetail{ProfileForm: x.newProfileView(f, changed.Phones), Open: "profile"})
	}
	err = x.changeTaxpayer(found.ID, func(changed *store.Taxpayer) error {
		if seen := f.Value("updated_at"); seen != "" && seen != lastChange(*changed) {
			found = *changed
			return errProfileChanged
		}
		if len(logo) > 0 {
			changed.Logo = logo
		}
		return x.readProfile(f, changed)
	})
	switch {
	case errors.Is(err, errProfileChanged):
		return x.refuseOldProfile(f, found, changed.Phones)
	case errors.Is(err, store.ErrRNCHasRanges):
		f.fail("rnc", x.text("taxpayers.rnc_has_ranges"))
		return x.renderTaxpayer(http.StatusUnprocessableEntity, taxpayerDetail{ProfileForm: x.newProfileView(f, changed.Phones), Open: "profile"})
	case err != nil:
		return err
	}
	return x.done(taxpayersAddress+"/"+found.ID, "taxpayers.profile")
}

// errProfileChanged says that a profile was changed after the form was shown.
var errProfileChanged = errors.New("console: the profile has changed")

// refuseOldProfile shows the form as it was written, who changed the profile meanwhile, and
// what is stored now. The form can be sent again: its writer has seen the change.
func (x *request) refuseOldProfile(f *form, stored store.Taxpayer, phones []string) error {
	object := "taxpayer:" + stored.ID
	last, err := x.console.o.Store.AuditEntriesBefore(x.Context(), store.AuditFilter{Object: object}, math.MaxInt64, 1)
	if err != nil {
		return err
	}
	who := x.text("taxpayers.somebody")
	if len(last) == 1 && last[0].Action == "taxpayer.update" {
		who = last[0].Caller.Actor
	}
	f.fail("", x.text("taxpayers.profile_changed", who))
	f.values.Set("updated_at", lastChange(stored))
	view := x.newProfileView(f, phones)
	view.Stored = x.storedProfile(f, stored)
	return x.renderTaxpayer(http.StatusConflict, taxpayerDetail{ProfileForm: view, Open: "profile"})
}

// storedProfile returns the stored values of the fields that the form would change.
func (x *request) storedProfile(f *form, stored store.Taxpayer) (all []fact) {
	now := profileForm(stored)
	for _, name := range []string{
		"rnc", "legal_name", "trade_name", "address", "branch", "municipality", "province", "phone", "email", "website", "economic_activity", "income_type",
		"electronic_since", "page_format",
	} {
		written, sent := f.values[name]
		if !sent {
			continue
		}
		is := strings.Join(now.values[name], ", ")
		if is != strings.Join(slices.DeleteFunc(slices.Clone(written), func(s string) bool { return strings.TrimSpace(s) == "" }), ", ") {
			all = append(all, fact{x.text("taxpayers." + name), cmp.Or(is, "–")})
		}
	}
	return all
}

// changeTaxpayer reads a taxpayer, changes it and stores it, in one transaction.
func (x *request) changeTaxpayer(id string, change func(*store.Taxpayer) error) error {
	c := x.console
	return c.o.Store.Update(x.Context(), func(tx *store.Tx) error {
		changed, err := tx.LockedTaxpayer(x.Context(), id)
		if err != nil {
			return err
		}
		before := changed.UpdatedAt
		if err := change(&changed); err != nil {
			return err
		}
		// Two changes never have the same time: a form is compared by it.
		if changed.UpdatedAt = c.o.Now(); !changed.UpdatedAt.After(before) {
			changed.UpdatedAt = before.Add(time.Microsecond)
		}
		return tx.UpdateTaxpayer(x.Context(), changed)
	})
}

// showLogo answers with the logo of a taxpayer.
func (c *Console) showLogo(x *request, one shownTaxpayer) error {
	found := one.stored
	if len(found.Logo) == 0 {
		return errNotFound
	}
	mediaType := "image/jpeg"
	if strings.HasPrefix(string(found.Logo), "\x89PNG") {
		mediaType = "image/png"
	}
	x.w.Header().Set("Content-Type", mediaType)
	_, _ = x.w.Write(found.Logo) // if it fails, the browser has left
	return nil
}

// changeLogo replaces the logo.
func (c *Console) changeLogo(x *request) error {
	found, f, logo, err := x.taxpayerForm()
	if err != nil {
		return err
	}
	if f.ok() && len(logo) == 0 {
		f.fail("logo", x.text("taxpayers.no_file"))
	}
	if !f.ok() {
		return x.renderTaxpayer(http.StatusUnprocessableEntity, taxpayerDetail{LogoForm: f, Open: "logo"})
	}
	err = x.changeTaxpayer(found.ID, func(changed *store.Taxpayer) error {
		changed.Logo = logo
		return nil
	})
	if err != nil {
		return err
	}
	return x.done(taxpayersAddress+"/"+found.ID, "taxpayers.logo")
}

// importCertificate stores a certificate with its sealed private key. The password is used
// once and not stored.
func (c *Console) importCertificate(x *request, one shownTaxpayer) error {
	if err := x.parseUpload(); err != nil {
		return err
	}
	f := x.sentForm()
	file, err := x.upload(f, "p12")
	if err != nil {
		return err
	}
	defer clear(file)
	switch {
	case one.Environment == fiscal.Sandbox:
		f.fail("p12", x.text("taxpayers.certificate_sandbox"))
	case f.ok() && len(file) == 0:
		f.fail("p12", x.text("taxpayers.no_file"))
	}
	if f.ok() {
		if err := x.tryImport(f, one.Scope, file); err != nil {
			return err
		}
	}
	if !f.ok() {
		return x.renderTaxpayer(http.StatusUnprocessableEntity, taxpayerDetail{CertForm: f, Open: "certificate"})
	}
	return x.done(taxpayersAddress+"/"+one.TaxpayerID, "taxpayers.certificate")
}

// tryImport opens the file and imports it. What is wrong with the file or the password is
// an error of the form.
func (x *request) tryImport(f *form, scope store.Scope, file []byte) error {
	identity, err := xmlsig.OpenP12(file, x.PostForm.Get("p12_password")) // spaces are part of a password
	if err == nil {
		_, err = x.console.o.Certificates.Import(x.Context(), scope, identity)
	}
	for _, known := range []struct {
		err   error
		field string
		key   string
	}{
		{xmlsig.ErrPassword, "p12_password", "taxpayers.p12_password"}, {xmlsig.ErrNotP12, "p12", "taxpayers.p12_not"}, {xmlsig.ErrNoKey, "p12", "taxpayers.p12_no_key"},
		{xmlsig.ErrKeyMismatch, "p12", "taxpayers.p12_mismatch"}, {xmlsig.ErrWeakKey, "p12", "taxpayers.p12_weak"},
		{access.ErrCertificateExpired, "p12", "taxpayers.p12_expired"}, {access.ErrCertificateNotYetValid, "p12", "taxpayers.p12_future"},
		{access.ErrCertificateRevoked, "p12", "taxpayers.p12_revoked"}, {access.ErrNoPerson, "p12", "taxpayers.p12_person"},
	} {
		if errors.Is(err, known.err) {
			f.fail(known.field, x.text(known.key))
			return nil
		}
	}
	if err != nil && identity == nil { // the file has a form that cannot be read
		f.fail("p12", x.text("taxpayers.p12_not"))
		return nil
	}
	return err
}

// revokeCertificate keeps a certificate from signing.
func (c *Console) revokeCertificate(x *request, one shownTaxpayer) error {
	all, err := c.o.Store.CertificatesOf(x.Context(), one.Scope)
	if err != nil {
		return err
	}
	id := x.PathValue("certificate")
	if !slices.ContainsFunc(all, func(c store.Certificate) bool { return c.ID == id }) {
		return errNotFound
	}
	if _, err := c.o.Certificates.Revoke(x.withReason(), id); err != nil {
		return err
	}
	return x.done(taxpayersAddress+"/"+one.TaxpayerID, "taxpayers.revoke")
}

// addRange adds a range of numbers.
func (c *Console) addRange(x *request, one shownTaxpayer) (err error) {
	f := x.sentForm()
	spec := taxpayer.RangeSpec{Type: fiscal.Type(f.Value("type")), From: x.numberField(f, "from"), To: x.numberField(f, "to"), Expires: f.Value("expires")}
	if f.ok() {
		_, err = taxpayer.AddRange(x.Context(), c.o.Store, one.Scope, spec, c.o.Now())
	}
	texts := map[string]string{"type": "taxpayers.wrong_type", "from": "taxpayers.wrong_number", "to": "taxpayers.wrong_span", "expires": "taxpayers.wrong_expires"}
	var problems fiscal.Problems
	switch {
	case errors.As(err, &problems):
		for _, p := range problems {
			f.fail(p.Field, x.text(texts[p.Field]))
		}
	case errors.Is(err, store.ErrOverlap):
		f.fail("from", x.text("taxpayers.overlap"))
	case errors.Is(err, taxpayer.ErrSandboxNumbers):
		f.fail("", x.text("taxpayers.ranges_sandbox"))
	case err != nil:
		return err
	}
	if !f.ok() {
		return x.renderTaxpayer(http.StatusUnprocessableEntity, taxpayerDetail{RangeForm: f, Open: "ranges"})
	}
	return x.done(taxpayersAddress+"/"+one.TaxpayerID, "taxpayers.range")
}

// numberField returns the number in a field. People write numbers with separators, or copy
// an e-NCF.
func (x *request) numberField(f *form, name string) int64 {
	text := strings.NewReplacer(",", "", " ", "", ".", "").Replace(f.Value(name))
	if len(text) == 13 && strings.HasPrefix(strings.ToUpper(text), "E3") { // E, type, ten digits
		text = text[3:]
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		f.fail(name, x.text("taxpayers.wrong_number"))
	}
	return n
}

// withReason returns a context whose changes have the reason of the form, for the audit
// log.
func (x *request) withReason() context.Context {
	return audit.WithReason(x.Context(), x.sentForm().Value("reason"))
}

// suspendTaxpayer refuses the requests of a taxpayer until it is resumed.
func (c *Console) suspendTaxpayer(x *request, one shownTaxpayer) error {
	return x.changeSuspension(one, "taxpayers.suspend", func(tx *store.Tx, subject store.Subject) error {
		return tx.Suspend(x.withReason(), store.Suspension{Subject: subject, Reason: x.sentForm().Value("reason"), At: c.o.Now()})
	})
}

// resumeTaxpayer ends the suspension of a taxpayer.
func (c *Console) resumeTaxpayer(x *request, one shownTaxpayer) error {
	return x.changeSuspension(one, "taxpayers.resume", func(tx *store.Tx, subject store.Subject) error {
		return tx.Resume(x.withReason(), subject)
	})
}

func (x *request) changeSuspension(one shownTaxpayer, done string, change func(*store.Tx, store.Subject) error) error {
	err := x.console.o.Store.Update(x.Context(), func(tx *store.Tx) error { return change(tx, store.TaxpayerSubject(one.TaxpayerID)) })
	if err != nil {
		return err
	}
	return x.done(taxpayersAddress+"/"+one.TaxpayerID, done)
}

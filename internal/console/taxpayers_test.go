package console

import (
	"bytes"
	"image"
	"image/png"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig/xmlsigtest"
)

// upload sends a form with a file, as a browser does.
func (b *browser) upload(address, field string, file []byte, pairs ...string) answer {
	b.e.t.Helper()
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	part, err := w.CreateFormFile(field, "file.bin")
	b.e.must(err)
	_, err = part.Write(file)
	b.e.must(err)
	for i := 0; i < len(pairs); i += 2 {
		b.e.must(w.WriteField(pairs[i], pairs[i+1]))
	}
	b.e.must(w.Close())
	r := httptest.NewRequestWithContext(b.e.t.Context(), http.MethodPost, address, &body)
	r.Header = b.header.Clone()
	r.Header.Set("Content-Type", w.FormDataContentType())
	for name, value := range b.cookies {
		r.AddCookie(&http.Cookie{Name: name, Value: value})
	}
	recorder := httptest.NewRecorder()
	b.handler.ServeHTTP(recorder, r)
	return answer{recorder.Result(), recorder.Body.String()}
}

func picture(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 40, 20))); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// p12 returns a PKCS#12 file that is valid for some days.
func (e *env) p12(days int, password string) []byte {
	e.t.Helper()
	leaf := xmlsigtest.Must(e.t, xmlsigtest.Options{
		SerialNumber: "IDCDO-00112345678", NotBefore: e.clock.Now().Add(-time.Hour * 24 * 100), NotAfter: e.clock.Now().Add(time.Duration(days)*24*time.Hour + time.Hour),
	})
	file, err := leaf.P12(password)
	e.must(err)
	return file
}

// An operator takes a taxpayer from nothing to ready: profile, logo, certificate and
// ranges, each with the form of its step.
func TestATaxpayerBecomesReady(t *testing.T) {
	t.Parallel()
	e := newEnv(t, certification)
	b, u := e.signedIn(store.RoleOperator)
	wrong := b.post("/console/taxpayers", "rnc", "12", "legal_name", "Nueva, SRL", "email", "x", "income_type", "09")
	for _, field := range []string{"rnc", "email", "income_type"} {
		if wrong.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(wrong.body, `id="`+field+`-error"`) || !strings.Contains(wrong.body, `value="Nueva, SRL"`) {
			t.Errorf("%d, no error at %s, or the values are lost", wrong.StatusCode, field)
		}
	}
	made := b.upload("/console/taxpayers", "logo", picture(t), "rnc", "199000021", "legal_name", "Nueva, SRL", "phone", "809-555-0100", "phone", "", "municipality", "Santiago")
	address, _, _ := strings.Cut(made.Header.Get("Location"), "?")
	if made.StatusCode != http.StatusSeeOther || !strings.HasPrefix(address, "/console/taxpayers/") {
		t.Fatalf("create: %d %.400s", made.StatusCode, made.body)
	}
	if twice := b.post("/console/taxpayers", "rnc", "199000021", "legal_name", "Nueva, SRL"); twice.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(twice.body, `name="same_rnc"`) {
		t.Errorf("the same RNC again: %d", twice.StatusCode)
	}
	id := strings.TrimPrefix(address, "/console/taxpayers/")
	if got := b.get(address + "/logo"); got.Header.Get("Content-Type") != "image/png" {
		t.Errorf("logo: %d %s", got.StatusCode, got.Header.Get("Content-Type"))
	}
	stored, err := e.o.Store.Taxpayer(t.Context(), id)
	e.must(err)
	if stored.Municipality == "" || stored.Province == "" || len(stored.Phones) != 1 || stored.IncomeType != "01" {
		t.Errorf("stored: %+v", stored)
	}
	if got := b.get(address).body; strings.Count(got, "No puede emitir") != 2 || !strings.Contains(got, "falta la dirección; falta el certificado; falta la secuencia") {
		t.Error("the page does not say what is missing")
	}
	wantAnswer(t, "profile", b.post(address, "address", "Av. Central 1"), http.StatusSeeOther)
	if changed, err := e.o.Store.Taxpayer(t.Context(), id); err != nil || changed.Address != "Av. Central 1" || changed.LegalName != "Nueva, SRL" || len(changed.Logo) == 0 {
		t.Errorf("the profile is %+v, %v", changed, err)
	}
	if got := b.upload(address+"/certificates", "p12", e.p12(20, "secreta "), "p12_password", "secreta "); got.StatusCode != http.StatusSeeOther {
		t.Errorf("certificate: %d %.300s", got.StatusCode, got.body)
	}
	for _, kind := range []string{"31", "32"} {
		wantAnswer(t, "range", b.post(address+"/ranges", "type", kind, "from", "1", "to", "1,000", "expires", "2027-12-31"), http.StatusSeeOther)
	}
	page := b.get(address).body
	if strings.Count(page, "Puede emitir") != 2 || !strings.Contains(page, "Vence en 20 días") || strings.Contains(page, "secreta") {
		t.Error("the taxpayer is not ready, or the page shows no days")
	}
	if list := b.get("/console/taxpayers?q=nueva").body; !strings.Contains(list, "20 días") || !strings.Contains(list, "1,000") || strings.Contains(list, "Palma Clara") {
		t.Error("the list does not show days and numbers, or does not filter")
	}
	for needs, want := range map[string]bool{"certificate": true, "ranges": false, "anything": false, "": true} {
		if got := strings.Contains(b.get("/console/taxpayers?needs="+needs).body, address); got != want {
			t.Errorf("needs=%s shows the taxpayer: %v", needs, got)
		}
	}
	for _, action := range []string{"taxpayer.create", "taxpayer.update", "certificate.import", "sequence.add"} {
		e.mustHaveDone(action, u)
	}
}

// What is wrong with a file, a password or a range is said at the field, in the open form
// of the step.
func TestWrongFormsOfATaxpayer(t *testing.T) {
	t.Parallel()
	e := newEnv(t, certification)
	b, _ := e.signedIn(store.RoleOperator)
	address := "/console/taxpayers/" + e.taxpayer
	good := e.p12(100, "secreta")
	for name, test := range map[string]struct {
		got   answer
		field string
		step  string
	}{
		"wrong password": {b.upload(address+"/certificates", "p12", good, "p12_password", "otra"), "p12_password", "certificate-form"},
		"no file":        {b.post(address + "/certificates"), "p12", "certificate-form"},
		"not a p12":      {b.upload(address+"/certificates", "p12", []byte("text"), "p12_password", "x"), "p12", "certificate-form"},
		"too large":      {b.upload(address+"/certificates", "p12", make([]byte, maxFile+1), "p12_password", "x"), "p12", "certificate-form"},
		"expired":        {b.upload(address+"/certificates", "p12", e.p12(-1, "a"), "p12_password", "a"), "p12", "certificate-form"},
		"not a logo":     {b.upload(address+"/logo", "logo", []byte("GIF89a")), "logo", "logo-form"},
		"letters":        {b.post(address+"/ranges", "type", "32", "from", "uno", "to", "9"), "from", "range-form"},
		"31 with no day": {b.post(address+"/ranges", "type", "31", "from", "1", "to", "9"), "expires", "range-form"},
		"backwards":      {b.post(address+"/ranges", "type", "32", "from", "9", "to", "1"), "to", "range-form"},
		"another type":   {b.post(address+"/ranges", "type", "33", "from", "1", "to", "9"), "type", "range-form"},
		"wrong profile":  {b.post(address, "rnc", "1"), "rnc", "profile-form"},
	} {
		if test.got.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(test.got.body, `id="`+test.field+`-error"`) || !strings.Contains(test.got.body, `id="`+test.step+`" open`) {
			t.Errorf("%s: %d, or no error at %s in the open %s", name, test.got.StatusCode, test.field, test.step)
		}
		checkPage(t, name, test.got)
	}
	b.post(address+"/ranges", "type", "32", "from", "1", "to", "9")
	if got := b.post(address+"/ranges", "type", "32", "from", "5", "to", "20"); !strings.Contains(got.body, "otra secuencia de este RNC") {
		t.Errorf("overlap: %d", got.StatusCode)
	}
	wantAnswer(t, "a huge upload", b.upload(address, "logo", make([]byte, maxUpload+1)), http.StatusBadRequest)
	sandbox := newEnv(t)
	operator, _ := sandbox.signedIn(store.RoleOperator)
	if got := operator.get("/console/taxpayers/" + sandbox.taxpayer).body; strings.Contains(got, `name="p12"`) || strings.Count(got, "Puede emitir") != 2 {
		t.Error("the sandbox asks for a certificate")
	}
}

// An operator suspends and resumes a taxpayer and revokes a certificate; an auditor only
// sees it, and an accountant and a developer do not.
func TestSuspensionAndRevocation(t *testing.T) {
	t.Parallel()
	e := newEnv(t, certification)
	b, u := e.signedIn(store.RoleOperator)
	address := "/console/taxpayers/" + e.taxpayer
	b.upload(address+"/certificates", "p12", e.p12(100, "a"), "p12_password", "a")
	scope := store.Scope{Environment: fiscal.Certification, TaxpayerID: e.taxpayer}
	all, err := e.o.Store.CertificatesOf(t.Context(), scope)
	e.must(err)
	b.post(address+"/suspend", "reason", "falta de pago")
	if got := b.get(address).body; !strings.Contains(got, "falta de pago") || !strings.Contains(got, address+"/resume") {
		t.Error("the page does not show the suspension")
	}
	auditor, _ := e.signedIn(store.RoleAuditor)
	got := auditor.get(address)
	if got.StatusCode != http.StatusOK || strings.Contains(got.body, `method="post" action="`+address) || strings.Contains(got.body, `name="p12"`) {
		t.Errorf("an auditor gets %d or has a control", got.StatusCode)
	}
	for _, role := range []store.Role{store.RoleAccountant, store.RoleDeveloper} {
		other, _ := e.signedIn(role, e.taxpayer)
		for _, path := range []string{"/console/taxpayers", address, address + "/logo"} {
			if got := other.get(path); got.StatusCode != http.StatusNotFound {
				t.Errorf("%s answers %s with %d", path, role, got.StatusCode)
			}
		}
	}
	b.post(address + "/resume")
	if left, err := e.o.Store.Suspensions(t.Context()); err != nil || len(left) != 0 {
		t.Errorf("suspensions: %v, %v", left, err)
	}
	wantAnswer(t, "the certificate of another taxpayer", b.post("/console/taxpayers/"+e.addTaxpayer("199000021", "Otra")+"/certificates/"+all[0].ID+"/revoke"), http.StatusNotFound)
	b.post(address + "/certificates/" + all[0].ID + "/revoke")
	if all, err = e.o.Store.CertificatesOf(t.Context(), scope); err != nil || all[0].RevokedAt.IsZero() {
		t.Errorf("the certificate is not revoked: %v", err)
	}
	for _, action := range []string{"taxpayer.suspend", "taxpayer.resume", "certificate.revoke"} {
		e.mustHaveDone(action, u)
	}
}

var hiddenTime = regexp.MustCompile(`name="updated_at" value="(\d+)"`)

// A profile that another operator changed meanwhile is not overwritten: the answer keeps what
// was written, and says who changed the profile and what is stored. The form can be sent
// again.
func TestAProfileIsNotOverwritten(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		e := newCertificationEnv(t, address)
		first, _ := e.signedIn(store.RoleOperator)
		second, u := e.signedIn(store.RoleOperator)
		page := taxpayersAddress + "/" + e.taxpayer
		seen := hiddenTime.FindStringSubmatch(first.get(page).body)
		if seen == nil {
			t.Fatal("the form has no time")
		}
		if got := second.post(page, "address", "Calle Segunda 2", "updated_at", seen[1]); got.StatusCode != http.StatusSeeOther {
			t.Fatalf("the first change: %d", got.StatusCode)
		}
		got := first.post(page, "address", "", "trade_name", "La Palma", "updated_at", seen[1])
		if got.StatusCode != http.StatusConflict {
			t.Fatalf("a form that is too old: %d", got.StatusCode)
		}
		got.want(t, u.Name+" cambió este perfil", "Dirección", "Calle Segunda 2", `value="La Palma"`)
		stored, err := e.o.Store.Taxpayer(t.Context(), e.taxpayer)
		e.must(err)
		if stored.Address != "Calle Segunda 2" || stored.TradeName != "" {
			t.Errorf("the profile was overwritten: %+v", stored)
		}
		again := hiddenTime.FindStringSubmatch(got.body)
		if again == nil || again[1] == seen[1] {
			t.Fatalf("the form has the time %v", again)
		}
		wantAnswer(t, "the form that was sent again", first.post(page, "address", "Calle Segunda 2", "trade_name", "La Palma", "updated_at", again[1]), http.StatusSeeOther)
	})
}

// A taxpayer with number ranges keeps its RNC.
func TestTheRNCOfATaxpayerWithRanges(t *testing.T) {
	t.Parallel()
	e := newEnv(t, certification)
	b, _ := e.signedIn(store.RoleOperator)
	page := taxpayersAddress + "/" + e.taxpayer
	if got := b.post(page+"/ranges", "type", "31", "from", "1", "to", "10", "expires", "2027-12-31"); got.StatusCode != http.StatusSeeOther {
		t.Fatalf("range: %d", got.StatusCode)
	}
	got := b.post(page, "rnc", "199000102")
	if got.StatusCode != http.StatusUnprocessableEntity {
		t.Fatalf("another RNC: %d", got.StatusCode)
	}
	got.want(t, `id="rnc-error"`, "el RNC no se puede cambiar")
}

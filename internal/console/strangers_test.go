package console

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/capacity"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// hookReader calls a function before it is read for the first time.
type hookReader struct {
	io.Reader
	hook func()
}

func (h *hookReader) Read(b []byte) (int, error) {
	if h.hook != nil {
		h.hook()
		h.hook = nil
	}
	return h.Reader.Read(b)
}

// postBody sends a form from a reader.
func (b *browser) postBody(address string, body io.Reader, size int) *httptest.ResponseRecorder {
	b.e.t.Helper()
	r := httptest.NewRequestWithContext(b.e.t.Context(), http.MethodPost, address, body)
	r.Header, r.ContentLength = b.header.Clone(), int64(size)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for name, value := range b.cookies {
		r.AddCookie(&http.Cookie{Name: name, Value: value})
	}
	w := httptest.NewRecorder()
	b.handler.ServeHTTP(w, r)
	return w
}

// A person who holds back the end of a form does not keep a session that has ended, and not
// the role that the person had at the beginning of the form.
func TestASlowFormDoesNotOutlastItsSession(t *testing.T) {
	t.Parallel()
	const form = "name=Eva&email=eva%40example.com&role=operator"
	for name, c := range map[string]struct {
		meanwhile func(e *env, u store.User)
		status    int
	}{
		"disabled": {func(e *env, u store.User) {
			_, err := e.o.People.Disable(t.Context(), u.ID)
			e.must(err)
		}, http.StatusSeeOther},
		"another role": {func(e *env, u store.User) {
			e.must(e.o.Store.Update(t.Context(), func(tx *store.Tx) error {
				return tx.UpdateUser(t.Context(), u.ID, "user.role", func(u *store.User) error { u.Role = store.RoleAuditor; return nil })
			}))
		}, http.StatusForbidden},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEnv(t)
			b, u := e.signedIn(store.RoleOperator)
			before, err := e.o.Store.Users(t.Context())
			e.must(err)
			slow := &hookReader{strings.NewReader(form), func() { c.meanwhile(e, u); e.clock.Advance(5 * time.Second) }}
			if w := b.postBody("/console/users", slow, len(form)); w.Code != c.status {
				t.Errorf("%d %s, want %d", w.Code, w.Header().Get("Location"), c.status)
			}
			after, err := e.o.Store.Users(t.Context())
			e.must(err)
			if len(after) != len(before) {
				t.Error("the form had its effect")
			}
		})
	}
}

// Requests without a session count against the limit of their address. People who are signed
// in do not.
func TestRequestsWithoutASessionAreLimited(t *testing.T) {
	t.Parallel()
	full, counted := false, 0
	e := newEnv(t, func(o *Options) { o.Limit = func(*http.Request) bool { counted++; return !full } })
	b, _ := e.signedIn(store.RoleOperator)
	full, counted = true, 0
	if got := b.get("/console/"); got.StatusCode != http.StatusOK || counted != 0 {
		t.Errorf("a person who is signed in: %d, counted %d", got.StatusCode, counted)
	}
	stranger := e.browser()
	for _, address := range []string{"/console/sign-in", "/console/", "/console/welcome/x", "/console/nothing"} {
		if got := stranger.get(address); got.StatusCode != http.StatusTooManyRequests || got.Header.Get("Retry-After") == "" {
			t.Errorf("%s: %d", address, got.StatusCode)
		}
	}
	stranger.cookies[cookiePlain] = "guessed"
	if got := stranger.post("/console/sign-in", "email", "a@example.com", "password", "x"); got.StatusCode != http.StatusTooManyRequests || counted != 5 {
		t.Errorf("with a false session: %d, counted %d", got.StatusCode, counted)
	}
}

// The forms of strangers and of people take their memory from the capacity of the service,
// and only while they are read and processed.
func TestFormsHoldMemoryOfTheCapacity(t *testing.T) {
	t.Parallel()
	limits := capacity.DefaultLimits(1<<30, 2)
	limits.StrangerBytes, limits.Patience = 64<<10, time.Millisecond
	e := newEnv(t, func(o *Options) { o.Capacity = capacity.New(limits) })
	form := "email=a%40example.com&password=" + strings.Repeat("x", 40<<10)
	// The first form has used up the memory of its address when its end is read.
	var second int
	end := &hookReader{strings.NewReader(form[20<<10:]), func() {
		second = e.browser().postBody("/console/sign-in", strings.NewReader(form), len(form)).Code
	}}
	first := e.browser().postBody("/console/sign-in", io.MultiReader(strings.NewReader(form[:20<<10]), end), len(form))
	if first.Code != http.StatusUnauthorized || second != http.StatusServiceUnavailable {
		t.Errorf("the first form: %d, the second one: %d", first.Code, second)
	}
	if again := e.browser().postBody("/console/sign-in", strings.NewReader(form), len(form)); again.Code != http.StatusUnauthorized {
		t.Errorf("after the first one: %d", again.Code)
	}
}

// People of one taxpayer share what the taxpayer may hold, so that many of them who send
// forms slowly take nothing from others.
func TestSlowFormsOfATaxpayerTakeNothingFromOthers(t *testing.T) {
	t.Parallel()
	limits := capacity.DefaultLimits(1<<30, 2)
	limits.Reads = 4 // two of a taxpayer
	e := newEnv(t, func(o *Options) { o.Capacity = capacity.New(limits) })
	one, other := e.taxpayer, e.addTaxpayer("199000021", "Otra, SRL")
	ana, _ := e.signedIn(store.RoleAccountant, one)
	luis, _ := e.signedIn(store.RoleAccountant, one)
	eva, _ := e.signedIn(store.RoleAccountant, other)
	const form = "language=en"
	send := func(b *browser, meanwhile func()) int {
		return b.postBody("/console/account/preferences", &hookReader{strings.NewReader(form), meanwhile}, len(form)).Code
	}
	var more, others int
	send(ana, func() {
		send(luis, func() { more, others = send(ana, nil), send(eva, nil) })
	})
	if more != http.StatusServiceUnavailable || others == http.StatusServiceUnavailable {
		t.Errorf("a third form of the taxpayer: %d; a form of another one: %d", more, others)
	}
}

// The log has the type and the place of a panic, and not its value.
func TestAPanicDoesNotLogItsValue(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	e := newEnv(t, func(o *Options) { o.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	e.addLive("/console/fails", func(*request) error { panic("the password is " + goodPassword) })
	b, _ := e.signedIn(store.RoleAuditor)
	wantAnswer(t, "a page that fails", b.get("/console/fails"), http.StatusInternalServerError)
	if text := log.String(); strings.Contains(text, goodPassword) || !strings.Contains(text, "type=string") {
		t.Errorf("the log: %s", text)
	}
}

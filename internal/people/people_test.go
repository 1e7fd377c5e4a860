package people

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/access"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// The vectors of RFC 6238, appendix B, for SHA-1. They have 8 digits; the last 6 are ours.
func TestCodesAreThoseOfTheStandard(t *testing.T) {
	t.Parallel()
	secret := []byte("12345678901234567890")
	for unix, want := range map[int64]string{
		59: "94287082", 1111111109: "07081804", 1111111111: "14050471", 1234567890: "89005924", 2000000000: "69279037", 20000000000: "65353130",
	} {
		at := time.Unix(unix, 0)
		if got := code(secret, stepOf(at)); got != want[2:] {
			t.Errorf("code at %d = %s, want %s", unix, got, want[2:])
		}
		for drift, ok := range map[time.Duration]bool{-30 * time.Second: true, 30 * time.Second: true, 90 * time.Second: false, -90 * time.Second: false} {
			if _, got := matchCode(secret, want[2:], at.Add(drift)); got != ok {
				t.Errorf("the code of %d is valid %s later: %v", unix, drift, got)
			}
		}
	}
}

func TestPasswordsThatAreRefused(t *testing.T) {
	t.Parallel()
	for password, want := range map[string]error{
		"": ErrPasswordShort, "elevenchars": ErrPasswordShort, "contraseña1": ErrPasswordShort, "ñññññññññññ": ErrPasswordShort,
		"Password1234": ErrPasswordCommon, "Unbelievable": ErrPasswordCommon, "123qweasdzxc": ErrPasswordCommon, "santodomingo": ErrPasswordCommon, strings.Repeat("x", 1025): ErrPasswordLong,
		"aaaa bbbb cc": nil, goodPassword: nil,
	} {
		if got := CheckPassword(password); !errors.Is(got, want) || want == nil && got != nil {
			t.Errorf("CheckPassword(%.20q) = %v, want %v", password, got, want)
		}
	}
	for line := range strings.Lines(commonPasswords) {
		if word := strings.TrimSpace(line); word != strings.ToLower(word) || len([]rune(word)) < MinPassword {
			t.Errorf("the list has %q, which no password matches", word)
		}
	}
}

func TestArgon2(t *testing.T) {
	t.Parallel()
	a := NewArgon2()
	a.memory, a.passes = 64, 1 // quick; the parameters are in the hash
	hash, err := a.Hash(t.Context(), goodPassword)
	if err != nil || !strings.HasPrefix(hash, "$argon2id$v=19$m=64,t=1,p=1$") {
		t.Fatalf("%s, %v", hash, err)
	}
	again, _ := a.Hash(t.Context(), goodPassword)
	if again == hash {
		t.Error("two hashes have the same salt")
	}
	for _, test := range []struct {
		hash, password string
		want           bool
	}{
		{hash, goodPassword, true}, {hash, goodPassword + " ", false}, {"", "", false}, {"", goodPassword, false}, {"$argon2id$v=19$m=64,t=1,p=1$$", "", false},
		{strings.Replace(hash, "m=64", "m=9999999", 1), goodPassword, false},
	} {
		if got, err := a.Matches(t.Context(), test.hash, test.password); err != nil || got != test.want {
			t.Errorf("Matches(%q, %q) = %v, %v", test.hash, test.password, got, err)
		}
	}
}

// Strangers cannot make the service compute many hashes at the same time.
func TestArgon2IsBounded(t *testing.T) {
	t.Parallel()
	a := NewArgon2()
	a.memory, a.passes = 64, 1
	for range argonRunning {
		a.running <- struct{}{}
	}
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	results := make(chan error, 2*argonWaiting)
	for range 2 * argonWaiting {
		all.Go(func() {
			_, err := a.Hash(ctx, "x")
			if !errors.Is(err, ErrBusy) && !errors.Is(err, context.Canceled) {
				t.Errorf("%v, want ErrBusy or the end of the request", err)
			}
			results <- err
		})
	}
	for range argonWaiting { // those that find no room are refused at once
		if err := <-results; !errors.Is(err, ErrBusy) {
			t.Errorf("%v, want ErrBusy", err)
		}
	}
	cancel()
	all.Wait()
}

func TestCreateRefusesWrongInvitations(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e *env) {
		good := Invitation{Name: "Ana", Email: "Ana@Example.com ", Role: store.RoleAccountant, TaxpayerIDs: []string{e.taxpayer}}
		for want, change := range map[error]func(*Invitation){
			ErrName:           func(in *Invitation) { in.Name = " " },
			ErrEmail:          func(in *Invitation) { in.Email = "Ana <ana@example.com>" },
			ErrRole:           func(in *Invitation) { in.Role = "king" },
			store.ErrNotFound: func(in *Invitation) { in.TaxpayerIDs = []string{store.NewID()} },
		} {
			in := good
			change(&in)
			if _, _, err := e.Create(t.Context(), in); !errors.Is(err, want) {
				t.Errorf("%+v: %v, want %v", in, err, want)
			}
		}
		u, token, err := e.Create(t.Context(), good)
		e.must(err)
		if u.Email != "ana@example.com" || len(token.Reveal()) != 43 || strings.Contains(fmt.Sprintf("%v %+v %#v", token, token, token), token.Reveal()) {
			t.Errorf("%+v, %v", u, token)
		}
		good.Email = "ANA@example.com"
		if _, _, err := e.Create(t.Context(), good); !errors.Is(err, store.ErrEmailTaken) {
			t.Errorf("the same address twice: %v", err)
		}
	})
}

// Every sign-in computes one hash, whatever is wrong, and gives the same error.
func TestSignInComputesOneHashForEveryAccount(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e *env) {
		e.add("ana@example.com", store.RoleOperator)
		disabled, _ := e.add("out@example.com", store.RoleOperator)
		_, err := e.Disable(t.Context(), disabled.ID)
		e.must(err)
		_, _, err = e.Create(t.Context(), Invitation{Name: "New", Email: "new@example.com", Role: store.RoleOperator})
		e.must(err)
		for _, test := range []struct{ email, password string }{
			{"ana@example.com", "wrong"}, {"nobody@example.com", "wrong"}, {"out@example.com", goodPassword}, {"new@example.com", ""}, {"no address", "x"}, {"", ""},
		} {
			before := e.counter.computed.Load()
			_, err := e.signIn(test.email, test.password, "")
			if !errors.Is(err, ErrDenied) || err.Error() != ErrDenied.Error() {
				t.Errorf("%s: %v, want ErrDenied", test.email, err)
			}
			if got := e.counter.computed.Load() - before; got != 1 {
				t.Errorf("%s: %d hashes, want 1", test.email, got)
			}
		}
	})
}

// Sign-ins at the same time do not exceed the limit of failures, and successes do not
// count.
func TestConcurrentFailuresAreLimited(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e *env) {
		e.add("ana@example.com", store.RoleOperator)
		before := e.counter.computed.Load()
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				var limited *LimitedError
				if _, err := e.signIn("ana@example.com", "wrong", ""); !errors.Is(err, ErrDenied) && !errors.As(err, &limited) {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if got := e.counter.computed.Load() - before; got != maxFailures {
			t.Errorf("%d passwords were checked, want %d", got, maxFailures)
		}
		e.clock.Advance(failureTime)
		for range 2 * maxFailures {
			if _, err := e.signIn("ana@example.com", goodPassword, ""); err != nil {
				t.Fatalf("sign-ins that succeed are limited: %v", err)
			}
		}
		for i := range maxFailures {
			if _, err := e.SignIn(t.Context(), Credentials{Email: fmt.Sprintf("%d@example.com", i)}, client()); !errors.Is(err, ErrDenied) {
				t.Fatal(err)
			}
		}
		var limited *LimitedError
		if _, err := e.SignIn(t.Context(), Credentials{Email: "x@example.com"}, client()); !errors.As(err, &limited) || limited.RetryAfter != failureTime {
			t.Errorf("the sixth failure of an address: %v", err)
		}
	})
}

func TestSecondFactor(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e *env) {
		u, cookie := e.add("ana@example.com", store.RoleOperator)
		_, session, err := e.Authenticate(t.Context(), cookie, fiscal.Sandbox)
		e.must(err)
		other, err := e.signIn(u.Email, goodPassword, "")
		e.must(err)
		e.must(e.BeginSecondFactor(t.Context(), u))
		if _, err := e.signIn(u.Email, goodPassword, ""); err != nil {
			t.Errorf("a second factor that is not confirmed is demanded: %v", err)
		}
		u, err = e.o.Store.User(t.Context(), u.ID)
		e.must(err)
		pending, ok, err := e.PendingSecondFactor(u)
		if err != nil || !ok || !strings.Contains(pending.Address, "secret="+pending.Secret) || !strings.HasPrefix(pending.Address, "otpauth://totp/fiscalhub:ana@example.com?") {
			t.Fatalf("%+v, %v, %v", pending, ok, err)
		}
		secret, err := secretEncoding.DecodeString(pending.Secret)
		e.must(err)
		now := func() string { return code(secret, stepOf(e.clock.Now())) }
		if _, err := e.ConfirmSecondFactor(t.Context(), u, session, "000000"); !errors.Is(err, ErrDenied) {
			t.Errorf("a wrong code: %v", err)
		}
		codes, err := e.ConfirmSecondFactor(t.Context(), u, session, now())
		if err != nil || len(codes) != recoveryCodes {
			t.Fatalf("%v, %v", codes, err)
		}
		if _, _, err := e.Authenticate(t.Context(), other, fiscal.Sandbox); !errors.Is(err, ErrDenied) {
			t.Errorf("another session goes on without the second factor: %v", err)
		}
		for _, test := range []struct {
			name, code string
			ok         bool
		}{
			{"without a code", "", false}, {"with the code of the confirmation", now(), false}, {"with a recovery code", strings.ToLower(codes[0]), true}, {"with the same recovery code", codes[0], false},
		} {
			if _, err := e.signIn(u.Email, goodPassword, test.code); (err == nil) != test.ok {
				t.Errorf("%s: %v", test.name, err)
			}
		}
		e.clock.Advance(time.Minute)
		if _, err := access.RotateMaster(t.Context(), e.o.Store, e.keys, nil); err != nil {
			t.Fatal(err)
		}
		if _, err := e.signIn(u.Email, goodPassword, now()); err != nil {
			t.Errorf("with a code, after a rotation of the master key: %v", err)
		}
		if _, err := e.signIn(u.Email, goodPassword, now()); !errors.Is(err, ErrDenied) {
			t.Errorf("the same code twice: %v", err)
		}
		if left, err := e.RecoveryCodesLeft(t.Context(), u.ID); err != nil || left != recoveryCodes-1 {
			t.Errorf("%d recovery codes are left, %v", left, err)
		}
		e.clock.Advance(time.Minute)
		u, err = e.o.Store.User(t.Context(), u.ID)
		e.must(err)
		if err := e.RemoveSecondFactor(t.Context(), u, "wrong"); !errors.Is(err, ErrDenied) {
			t.Errorf("removed with a wrong password: %v", err)
		}
		e.must(e.RemoveSecondFactor(t.Context(), u, goodPassword))
		if _, err := e.signIn(u.Email, goodPassword, ""); err != nil {
			t.Errorf("after the removal: %v", err)
		}
	})
}

// Changes of a person end the sessions: of a disabled person, of another role, after a
// reset, and the other ones after a new password.
func TestChangesEndSessions(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e *env) {
		open := func(cookie Token) bool {
			_, _, err := e.Authenticate(t.Context(), cookie, fiscal.Sandbox)
			if err != nil && !errors.Is(err, ErrDenied) {
				t.Fatal(err)
			}
			return err == nil
		}
		u, cookie := e.add("ana@example.com", store.RoleAccountant)
		_, session, err := e.Authenticate(t.Context(), cookie, fiscal.Sandbox)
		e.must(err)
		other, err := e.signIn(u.Email, goodPassword, "")
		e.must(err)
		u, err = e.o.Store.User(t.Context(), u.ID)
		e.must(err)
		if err := e.ChangePassword(t.Context(), u, session, "wrong", "otra frase larga"); !errors.Is(err, ErrDenied) {
			t.Errorf("with a wrong password: %v", err)
		}
		e.must(e.ChangePassword(t.Context(), u, session, goodPassword, "otra frase larga"))
		if !open(cookie) || open(other) {
			t.Error("a new password must end the other sessions, and only those")
		}
		changed, err := e.ChangeRole(t.Context(), u.ID, store.RoleDeveloper, nil)
		e.must(err)
		if open(cookie) || changed.Role != store.RoleDeveloper || len(changed.TaxpayerIDs) != 1 {
			t.Errorf("after another role: %+v", changed)
		}
		cookie, err = e.signIn(u.Email, "otra frase larga", "")
		e.must(err)
		_, link, err := e.Reset(t.Context(), u.ID)
		e.must(err)
		if _, err := e.signIn(u.Email, "otra frase larga", ""); open(cookie) || !errors.Is(err, ErrDenied) {
			t.Errorf("after a reset: %v", err)
		}
		if _, err := e.Disable(t.Context(), u.ID); err != nil {
			t.Fatal(err)
		}
		if _, err := e.Welcome(t.Context(), link, goodPassword, client()); !errors.Is(err, ErrLink) {
			t.Errorf("the link of a disabled person: %v", err)
		}
		_, link, err = e.Reset(t.Context(), u.ID)
		e.must(err)
		cookie, err = e.Welcome(t.Context(), link, goodPassword, client())
		e.must(err)
		if !open(cookie) {
			t.Error("a reset does not enable a disabled person")
		}
		if _, _, err := e.Authenticate(t.Context(), ParseToken("x"), fiscal.Sandbox); !errors.Is(err, ErrDenied) {
			t.Errorf("an unknown cookie: %v", err)
		}
	})
}

// A person of one environment cannot use the console of another one.
func TestAPersonIsLimitedToAnEnvironment(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e *env) {
		_, link, err := e.Create(t.Context(), Invitation{Name: "Ana", Email: "ana@example.com", Role: store.RoleOperator, Environment: fiscal.Production})
		e.must(err)
		cookie, err := e.Welcome(t.Context(), link, goodPassword, client())
		if err != nil || cookie != (Token{}) {
			t.Errorf("welcome: %v, a session: %v", err, cookie != Token{})
		}
		if _, err := e.signIn("ana@example.com", goodPassword, ""); !errors.Is(err, ErrDenied) {
			t.Errorf("the console of the sandbox: %v", err)
		}
		there := client()
		there.Environment = fiscal.Production
		cookie, err = e.SignIn(t.Context(), Credentials{Email: "ana@example.com", Password: goodPassword}, there)
		e.must(err)
		if _, _, err := e.Authenticate(t.Context(), cookie, fiscal.Certification); !errors.Is(err, ErrDenied) {
			t.Errorf("the cookie in another environment: %v", err)
		}
	})
}

// A flood of sign-ins from one address costs the database one transaction a second.
func TestAFloodOfSignInsDoesNotReachTheDatabase(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e *env) {
		for range maxFailures {
			_, _ = e.SignIn(t.Context(), Credentials{Email: "x@example.com"}, client())
		}
		var commits atomic.Int64
		e.o.Store.OnCommit(func(time.Duration, error) { commits.Add(1) })
		var limited *LimitedError
		for range 100 {
			if _, err := e.SignIn(t.Context(), Credentials{Email: "y@example.com"}, client()); !errors.As(err, &limited) {
				t.Fatal(err)
			}
		}
		if got := commits.Load(); got != 1 {
			t.Errorf("100 sign-ins made %d transactions, want 1", got)
		}
	})
}

// Neither the database nor its files have a password, a link, a cookie, a recovery code or
// the secret of a second factor.
func TestSecretsOfPeopleAreNotStored(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	e := newEnv(t, storetest.SQLite(t, dir))
	_, link, err := e.Create(t.Context(), Invitation{Name: "Ana", Email: "ana@example.com", Role: store.RoleOperator})
	e.must(err)
	e.o.Hasher = &Argon2{memory: 64, passes: 1, running: make(chan struct{}, 1), waiting: make(chan struct{}, 1)}
	cookie, err := e.Welcome(t.Context(), link, goodPassword, client())
	e.must(err)
	u, session, err := e.Authenticate(t.Context(), cookie, fiscal.Sandbox)
	e.must(err)
	e.must(e.BeginSecondFactor(t.Context(), u))
	u, err = e.o.Store.User(t.Context(), u.ID)
	e.must(err)
	pending, _, err := e.PendingSecondFactor(u)
	e.must(err)
	secret, err := secretEncoding.DecodeString(pending.Secret)
	e.must(err)
	codes, err := e.ConfirmSecondFactor(t.Context(), u, session, code(secret, stepOf(e.clock.Now())))
	e.must(err)
	_, _ = e.signIn("a password in the wrong field", "wrong", "")
	planted := append(codes, goodPassword, link.Reveal(), cookie.Reveal(), pending.Secret, string(secret), "a password in the wrong field")
	files, err := filepath.Glob(filepath.Join(dir, "fiscalhub.db*"))
	e.must(err)
	found := false
	for _, file := range files {
		content, err := os.ReadFile(file)
		e.must(err)
		found = found || strings.Contains(string(content), u.Email)
		for _, text := range planted {
			if strings.Contains(string(content), text) || strings.Contains(string(content), strings.ReplaceAll(text, "-", "")) {
				t.Errorf("%s has %q", filepath.Base(file), text)
			}
		}
	}
	if !found {
		t.Error("the search does not even find the email address")
	}
}

// slowHasher does something while it compares a password.
type slowHasher struct {
	Hasher
	meanwhile func()
}

func (h *slowHasher) Matches(ctx context.Context, hash, password string) (bool, error) {
	h.meanwhile()
	return h.Hasher.Matches(ctx, hash, password)
}

// While a sign-in checks the password, an operator resets or disables the person. The
// sign-in starts no session.
func TestASignInDoesNotOutlastItsPassword(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e *env) {
		for name, meanwhile := range map[string]func(id string){
			"reset": func(id string) {
				_, _, err := e.Reset(t.Context(), id)
				e.must(err)
			},
			"disable": func(id string) {
				_, err := e.Disable(t.Context(), id)
				e.must(err)
			},
		} {
			u, _ := e.add(name+"@example.com", store.RoleOperator)
			e.o.Hasher = &slowHasher{e.counter, func() { meanwhile(u.ID) }}
			if _, err := e.signIn(u.Email, goodPassword, ""); !errors.Is(err, ErrDenied) {
				t.Errorf("%s: %v", name, err)
			}
			e.o.Hasher = e.counter
			if sessions, err := e.Sessions(t.Context(), u.ID); err != nil || len(sessions) != 0 {
				t.Errorf("%s: %d sessions, %v", name, len(sessions), err)
			}
		}
	})
}

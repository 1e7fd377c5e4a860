package store_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// newUser returns a person with a value in every field.
func newUser(now time.Time, email string, taxpayers ...string) store.User {
	return store.User{
		ID: store.NewID(), Name: "Ana Pérez", Email: email, Role: store.RoleAccountant, Environment: fiscal.Sandbox, TaxpayerIDs: taxpayers,
		Language: "es", Theme: "dark", PasswordHash: "SECRET-HASH", SecondFactor: []byte("SECRET-SEALED"), SecondFactorAt: now, LastStep: 7,
		CreatedAt: now, DisabledAt: now, LastSignInAt: now,
	}
}

func TestUsersAreReadAsTheyWereStored(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		clock := storetest.NewClock()
		s, now := storetest.Open(t, address, clock.Now), clock.Now()
		scope := addScope(t, s)
		full, empty := newUser(now, "ana@example.com", scope.TaxpayerID), store.User{ID: store.NewID(), Name: "Eva", Email: "eva@example.com", Role: store.RoleOperator, CreatedAt: now}
		create := func(u store.User) error {
			return s.Update(t.Context(), func(tx *store.Tx) error { return tx.CreateUser(t.Context(), u) })
		}
		for _, u := range []store.User{full, empty} {
			if err := create(u); err != nil {
				t.Fatal(err)
			}
			got, err := s.UserByEmail(t.Context(), u.Email)
			if diff := cmp.Diff(u, got, cmpopts.EquateEmpty()); err != nil || diff != "" {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		}
		for want, u := range map[error]store.User{
			store.ErrEmailTaken: newUser(now, "ana@example.com"), store.ErrNotFound: newUser(now, "other@example.com", store.NewID()),
		} {
			if err := create(u); !errors.Is(err, want) {
				t.Errorf("%s: %v, want %v", u.Email, err, want)
			}
		}
		all, err := s.Users(t.Context())
		if diff := cmp.Diff([]store.User{full, empty}, all, cmpopts.EquateEmpty()); err != nil || diff != "" {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			return tx.UpdateUser(ctx, full.ID, "user.role", func(u *store.User) error {
				u.Role, u.TaxpayerIDs, u.DisabledAt, u.SecondFactor = store.RoleDeveloper, nil, time.Time{}, nil
				return nil
			})
		})
		full.Role, full.TaxpayerIDs, full.DisabledAt, full.SecondFactor = store.RoleDeveloper, nil, time.Time{}, nil
		got, err := s.User(t.Context(), full.ID)
		if diff := cmp.Diff(full, got, cmpopts.EquateEmpty()); err != nil || diff != "" {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
		entries := auditEntries(t, s, store.AuditFilter{Object: "user:" + full.ID})
		if len(entries) != 2 || entries[1].After != `{"disabled_at":null,"role":"developer","taxpayers":""}` {
			t.Errorf("the audit log has %+v", entries)
		}
	})
}

// A code of the second factor and a recovery code work once, and a link too.
func TestSecretsOfAPersonWorkOnce(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		clock := storetest.NewClock()
		s := storetest.Open(t, address, clock.Now)
		u := store.User{ID: store.NewID(), Name: "Eva", Email: "eva@example.com", Role: store.RoleOperator, CreatedAt: clock.Now()}
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			if err := tx.CreateUser(ctx, u); err != nil {
				return err
			}
			if err := tx.SetUserLink(ctx, u.ID, []byte("first"), clock.Now().Add(time.Hour)); err != nil {
				return err
			}
			if err := tx.SetUserLink(ctx, u.ID, []byte("second"), clock.Now().Add(time.Hour)); err != nil {
				return err
			}
			return tx.SetRecoveryCodes(ctx, u.ID, [][]byte{[]byte("a"), []byte("b")})
		})
		once := func(what string, use func(ctx context.Context, tx *store.Tx) (bool, error)) {
			for i, want := range []bool{true, false} {
				var used bool
				update(t, s, func(ctx context.Context, tx *store.Tx) (err error) {
					used, err = use(ctx, tx)
					return err
				})
				if used != want {
					t.Errorf("%s, use %d: %v", what, i+1, used)
				}
			}
		}
		once("a code", func(ctx context.Context, tx *store.Tx) (bool, error) { return tx.UseSecondFactor(ctx, u.ID, 5) })
		once("a recovery code", func(ctx context.Context, tx *store.Tx) (bool, error) {
			return tx.UseRecoveryCode(ctx, u.ID, []byte("a"))
		})
		once("a link", func(ctx context.Context, tx *store.Tx) (bool, error) {
			err := tx.DropUserLink(ctx, []byte("second"))
			if errors.Is(err, store.ErrNotFound) {
				return false, nil
			}
			return err == nil, err
		})
		if _, err := s.UserOfLink(t.Context(), []byte("first"), clock.Now()); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("a replaced link: %v", err)
		}
		if n, err := s.CountRecoveryCodes(t.Context(), u.ID); err != nil || n != 1 {
			t.Errorf("%d recovery codes are left, %v", n, err)
		}
	})
}

// Purge deletes sessions, links and failures that have expired, and no others.
func TestPurgeDeletesWhatPeopleLeaveBehind(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		clock := storetest.NewClock()
		s := storetest.Open(t, address, clock.Now)
		now := clock.Now()
		var users []store.User
		for i, ends := range []time.Time{now, now.Add(time.Second)} {
			u := store.User{ID: store.NewID(), Name: "Eva", Email: string(rune('a'+i)) + "@example.com", Role: store.RoleOperator, CreatedAt: now}
			users = append(users, u)
			update(t, s, func(ctx context.Context, tx *store.Tx) error {
				if err := tx.CreateUser(ctx, u); err != nil {
					return err
				}
				if err := tx.SetUserLink(ctx, u.ID, []byte(u.Email), ends); err != nil {
					return err
				}
				if _, err := tx.LockSignInFailures(ctx, u.Email); err != nil {
					return err
				}
				if err := tx.SetSignInFailures(ctx, u.Email, []time.Time{now}, ends); err != nil {
					return err
				}
				return tx.CreateUserSession(ctx, store.UserSession{ID: store.NewID(), Digest: []byte(u.Email), UserID: u.ID, CreatedAt: now, LastUsedAt: now, ExpiresAt: ends})
			})
		}
		got, err := s.Purge(t.Context(), now, 100)
		if err != nil || got.UserSessions != 1 || got.UserLinks != 1 || got.SignInFailures != 1 {
			t.Errorf("%+v, %v", got, err)
		}
		if open, err := s.UserSessions(t.Context(), users[1].ID, now); err != nil || len(open) != 1 {
			t.Errorf("the other session: %v, %v", open, err)
		}
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			kept, err := tx.LockSignInFailures(ctx, users[1].Email)
			if len(kept) != 1 || !kept[0].Equal(now) {
				t.Errorf("the other failures: %v", kept)
			}
			return err
		})
	})
}

func TestConsoleAddress(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		clock := storetest.NewClock()
		s := storetest.Open(t, address, clock.Now)
		want := func(env fiscal.Environment, want string) {
			t.Helper()
			if got, err := s.ConsoleAddress(t.Context(), env); err != nil || got != want {
				t.Errorf("%q: %q, %v, want %q", env, got, err, want)
			}
		}
		want("", "")
		for _, env := range []fiscal.Environment{fiscal.Production, fiscal.Sandbox, fiscal.Production} {
			clock.Advance(time.Second)
			update(t, s, func(ctx context.Context, tx *store.Tx) error {
				return tx.SetConsoleAddress(ctx, env, "https://"+string(env))
			})
		}
		want(fiscal.Sandbox, "https://sandbox")
		want("", "https://production")
		want(fiscal.Certification, "")
	})
}

// The newest entries come first, page by page, and the filters hold.
func TestAuditEntriesBefore(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		clock := storetest.NewClock()
		s := storetest.Open(t, address, clock.Now)
		start := clock.Now()
		for range 5 {
			addEntries(t, s, 1)
			clock.Advance(time.Minute)
		}
		for _, test := range []struct {
			filter store.AuditFilter
			before int64
			want   []int64
		}{
			{store.AuditFilter{}, 100, []int64{5, 4, 3}},
			{store.AuditFilter{}, 3, []int64{2, 1}},
			{store.AuditFilter{Since: start.Add(time.Minute), Until: start.Add(3 * time.Minute)}, 100, []int64{3, 2}},
			{store.AuditFilter{Actor: "no such actor"}, 100, nil},
		} {
			entries, err := s.AuditEntriesBefore(t.Context(), test.filter, test.before, 3)
			var got []int64
			for _, e := range entries {
				got = append(got, e.Seq)
			}
			if diff := cmp.Diff(test.want, got); err != nil || diff != "" {
				t.Errorf("%+v before %d: %v\n%s", test.filter, test.before, err, diff)
			}
		}
	})
}

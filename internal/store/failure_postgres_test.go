package store_test

import (
	"errors"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// The server reports a failed disk when it commits, or a damaged index. From then on the
// process writes nothing.
func TestAFailedDiskOfTheServerIsFinal(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]string{
		"the disk fails at the commit": `
			CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'could not fsync' USING ERRCODE = '58030'; END $$;
			CREATE CONSTRAINT TRIGGER fail AFTER INSERT ON taxpayers DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION fail()`,
		"an index is damaged": `
			CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'damaged index' USING ERRCODE = 'XX002'; END $$;
			CREATE TRIGGER fail AFTER INSERT ON taxpayers FOR EACH ROW EXECUTE FUNCTION fail()`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address := storetest.Address(t, "postgres")
			s, db := storetest.Open(t, address, time.Now), admin(t, address)
			scope := addScope(t, s)
			run(t, db, fault)
			insert := func() error {
				return s.Update(t.Context(), func(tx *store.Tx) error { return tx.CreateTaxpayer(t.Context(), sampleTaxpayer()) })
			}
			if err := insert(); !errors.Is(err, store.ErrBroken) || !errors.Is(err, store.ErrUnavailable) {
				t.Errorf("got %v, want ErrBroken", err)
			}
			run(t, db, `DROP FUNCTION fail() CASCADE`)
			_, register := s.Register(t.Context(), sampleRegistration(sampleInvoice(scope, "LATER")))
			for what, err := range map[string]error{"update": insert(), "register": register, "commit": s.Commit(t.Context(), new(store.Batch))} {
				if !errors.Is(err, store.ErrBroken) {
					t.Errorf("%s afterwards: %v, want ErrBroken", what, err)
				}
			}
			select {
			case <-s.Broken():
			default:
				t.Error("Broken is open")
			}
			if n := count(t, s, "taxpayers"); n != 1 {
				t.Errorf("%d taxpayers, want 1", n)
			}
		})
	}
}

package database_test

import (
	"errors"
	"testing"

	"github.com/fiscalhub/fiscalhub/internal/database"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// The server reports a failed disk when it commits, or a damaged index. From then on the
// process writes nothing.
func TestAFailedDiskOfTheServerIsFinal(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]string{
		"the disk fails at the commit": `
			CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'could not fsync' USING ERRCODE = '58030'; END $$;
			CREATE CONSTRAINT TRIGGER fail AFTER INSERT ON items DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION fail()`,
		"an index is damaged": `
			CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'damaged index' USING ERRCODE = 'XX002'; END $$;
			CREATE TRIGGER fail AFTER INSERT ON items FOR EACH ROW EXECUTE FUNCTION fail()`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address := storetest.Postgres(t).Empty(t)
			s, db := open(t, address), admin(t, address)
			if err := insertItem(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			run(t, db, fault)
			insert := func() error {
				return s.Update(t.Context(), func(q database.Querier) error { return add(t.Context(), q) })
			}
			if err := insert(); !errors.Is(err, database.ErrBroken) || !errors.Is(err, database.ErrUnavailable) {
				t.Errorf("got %v, want ErrBroken", err)
			}
			run(t, db, `DROP FUNCTION fail() CASCADE`)
			for what, err := range map[string]error{
				"update": insert(), "insert": insertItem(t.Context(), s), "batch": s.Batch(t.Context(), nil, func([]int64) error { return nil }),
			} {
				if !errors.Is(err, database.ErrBroken) {
					t.Errorf("%s afterwards: %v, want ErrBroken", what, err)
				}
			}
			select {
			case <-s.Broken():
			default:
				t.Error("Broken is open")
			}
			if n := countItems(t, s); n != 1 {
				t.Errorf("%d items, want 1", n)
			}
		})
	}
}

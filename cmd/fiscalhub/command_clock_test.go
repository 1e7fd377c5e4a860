package main

import (
	"bytes"
	"encoding/json"
	"io"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/database"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// The times that commands store come from the database's clock, which the servers compare
// them with. A command on a machine whose clock is ahead must not store later times: an
// old key would stay valid after a rotation without an overlap.
func TestCommandsStoreTheTimeOfTheDatabase(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		ahead := func() time.Time { return time.Now().Add(10 * time.Minute) }
		server := time.Now
		if file, err := database.SQLiteFile(address); err != nil || file != "" {
			server = ahead // the clock of the machine
		}
		s := storetest.Open(t, address, server)
		var out bytes.Buffer
		term := &terminal{ctx: t.Context(), cli: &cli{JSON: true, Data: t.TempDir(), Database: address}, out: &out, errOut: io.Discard, now: ahead}
		run := func(c interface{ Run(t *terminal) error }) (id string) {
			t.Helper()
			out.Reset()
			if err := c.Run(term); err != nil {
				t.Fatal(err)
			}
			var v struct{ ID string }
			if err := json.Unmarshal(out.Bytes(), &v); err != nil {
				t.Fatal(err)
			}
			return v.ID
		}
		check := func(what string, at time.Time) {
			t.Helper()
			if d := server().Sub(at); d.Abs() > time.Minute {
				t.Errorf("%s: the stored time is %s from the database's clock", what, d)
			}
		}

		id := run(taxpayerCreateCmd{RNC: "199000102", LegalName: "Comercial Demostración, SRL"})
		made, err := s.Taxpayer(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		check("taxpayer create: created", made.CreatedAt)
		check("taxpayer create: updated", made.UpdatedAt)
		street := "Calle Ficticia 1"
		run(taxpayerUpdateCmd{ID: id, profile: profile{Address: &street}})
		if made, err = s.Taxpayer(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		check("taxpayer update", made.UpdatedAt)

		run(rangeAddCmd{Taxpayer: id, Environment: "certification", Type: "32", From: 1, To: 10})
		ranges, err := s.NumberRanges(t.Context())
		if err != nil || len(ranges) != 1 {
			t.Fatalf("%+v, %v", ranges, err)
		}
		check("range add", ranges[0].CreatedAt)

		old := run(credentialCreateCmd{Taxpayer: id, Environment: "sandbox", Scope: []string{"ecf.read"}})
		successor := run(credentialRotateCmd{ID: old})
		for _, one := range []string{old, successor} {
			c, err := s.Credential(t.Context(), one)
			if err != nil {
				t.Fatal(err)
			}
			check("credential", c.CreatedAt)
			if one == old && c.Live(server()) {
				t.Error("the old key is still valid after a rotation without an overlap")
			}
		}
	})
}

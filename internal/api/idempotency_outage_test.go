package api_test

import (
	"bufio"
	"bytes"
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/pipeline"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// Another connection holds the lock that a creation needs for longer than the
// creation waits. Both engines share a test because most of its time is waiting.
func TestLockedDatabaseIsAnswered503(t *testing.T) {
	t.Parallel()
	locks := map[string][]string{
		"sqlite":   {`PRAGMA busy_timeout = 5000`, `BEGIN IMMEDIATE`},
		"postgres": {`BEGIN`, `LOCK TABLE idempotency IN SHARE ROW EXCLUSIVE MODE`},
	}
	var all sync.WaitGroup
	for _, engine := range storetest.Engines() {
		e := newEnv(t, storetest.Address(t, engine), envOptions{})
		ctx := context.WithoutCancel(t.Context())
		e.created(e.create("known", invoiceBody("A-0")))
		conn, err := e.database(t).Conn(ctx)
		e.must(err)
		executeAll(t, conn, locks[engine]...)
		// A replay works, because it does not write.
		var replays sync.WaitGroup
		replays.Go(func() {
			a, err := e.try(request{method: http.MethodPost, path: "invoices", idem: "known", body: invoiceBody("A-0")})
			if err != nil || a.status != http.StatusAccepted || a.header.Get("Idempotency-Replayed") != "true" {
				t.Errorf("%s: a replay while the database is locked: %s, %v", engine, a, err)
			}
		})
		all.Go(func() {
			a, err := e.try(request{method: http.MethodPost, path: "invoices", idem: "k", body: invoiceBody("A-1")})
			if err != nil {
				t.Error(err)
				return
			}
			wantCode(t, engine, a, http.StatusServiceUnavailable, "service_unavailable")
			if seconds, err := strconv.Atoi(a.header.Get("Retry-After")); err != nil || seconds < 1 {
				t.Errorf("%s: Retry-After %q", engine, a.header.Get("Retry-After"))
			}
			list, err := e.try(request{path: "invoices"})
			if err != nil || list.status != http.StatusOK || strings.Count(string(list.body), `"external_id"`) != 1 {
				t.Errorf("%s: a read while the database is locked: %s, %v", engine, list, err)
			}
			replays.Wait()
			executeAll(t, conn, `ROLLBACK`)
			a, err = e.try(request{method: http.MethodPost, path: "invoices", idem: "k", body: invoiceBody("A-1")})
			if err != nil || a.status != http.StatusAccepted || a.header.Get("Idempotency-Replayed") != "" {
				t.Errorf("%s: the retry: %s, %v", engine, a, err)
			}
			e.wantRows(2)
		})
	}
	all.Wait()
}

func executeAll(t *testing.T, conn *sql.Conn, statements ...string) {
	for _, s := range statements {
		if _, err := conn.ExecContext(context.WithoutCancel(t.Context()), s); err != nil {
			t.Errorf("%s: %v", s, err)
		}
	}
}

// commitCutter is a proxy in front of PostgreSQL. It closes one connection at the
// commit of a transaction that wrote a marked text.
type commitCutter struct {
	marker []byte
	mode   atomic.Int32
	cuts   atomic.Int32
}

const (
	cutNothing int32 = iota
	cutRequest       // the commit never arrives
	cutAnswer        // the commit arrives, its answer does not
)

// carry copies messages in both directions until one side closes or the
// connection is cut.
func (c *commitCutter) carry(client, server net.Conn) {
	var deaf atomic.Bool // answers of the server are dropped
	var back sync.WaitGroup
	back.Go(func() {
		defer func() { _ = client.Close() }()
		buffer := make([]byte, 32<<10)
		for {
			n, err := server.Read(buffer)
			if err != nil || deaf.Load() {
				return // the dropped answer shows that the commit is done
			}
			if _, err := client.Write(buffer[:n]); err != nil {
				return
			}
		}
	})
	c.forward(bufio.NewReader(client), server, &deaf)
	if deaf.Load() {
		back.Wait()
	}
	_, _ = client.Close(), server.Close()
	back.Wait()
}

// forward copies the messages of the client. The first one has no type; each other
// one has a type and a length (PostgreSQL, frontend/backend protocol).
func (c *commitCutter) forward(from *bufio.Reader, to io.Writer, deaf *atomic.Bool) {
	marked := false
	for head := 4; ; head = 5 {
		message := make([]byte, head)
		if _, err := io.ReadFull(from, message); err != nil {
			return
		}
		rest := make([]byte, binary.BigEndian.Uint32(message[head-4:])-4)
		if _, err := io.ReadFull(from, rest); err != nil {
			return
		}
		marked = marked || bytes.Contains(rest, c.marker)
		if text := bytes.ToLower(rest); message[0] == 'Q' && (bytes.HasPrefix(text, []byte("begin")) || bytes.HasPrefix(text, []byte("rollback"))) {
			// The marked text belonged to a read or a replay; the next commit on this
			// connection is that of the journal. A creation begins within its batch.
			marked = false
		}
		if marked && message[0] == 'Q' && bytes.HasPrefix(bytes.ToLower(rest), []byte("commit")) {
			switch mode := c.mode.Swap(cutNothing); mode {
			case cutRequest:
				c.cuts.Add(1)
				return
			case cutAnswer:
				c.cuts.Add(1)
				deaf.Store(true)
			}
			marked = false
		}
		if _, err := to.Write(append(message, rest...)); err != nil {
			return
		}
		if deaf.Load() {
			return
		}
	}
}

func TestRetryAfterAConnectionLostDuringCommit(t *testing.T) {
	t.Parallel()
	c := &commitCutter{marker: []byte("cut-me")}
	address, _ := proxyPostgres(t, storetest.Address(t, "postgres"), c.carry)
	e := newEnv(t, address, envOptions{})
	e.created(e.create("before", invoiceBody("before")))
	for i, tt := range []struct {
		name     string
		mode     int32
		replayed string
	}{
		{"the commit never arrives", cutRequest, ""},
		{"the answer never arrives", cutAnswer, "true"},
		{"the commit never arrives, again", cutRequest, ""},
		{"the answer never arrives, again", cutAnswer, "true"},
	} {
		id := fmt.Sprintf("cut-me-%d", i)
		c.mode.Store(tt.mode)
		a := e.create(id, invoiceBody(id))
		wantCode(t, tt.name, a, http.StatusServiceUnavailable, "service_unavailable")
		if a.header.Get("Retry-After") == "" {
			t.Errorf("%s: no Retry-After", tt.name)
		}
		a = e.create(id, invoiceBody(id))
		e.created(a)
		if got := a.header.Get("Idempotency-Replayed"); got != tt.replayed {
			t.Errorf("%s: Idempotency-Replayed %q, want %q", tt.name, got, tt.replayed)
		}
		e.wantOneInvoice(tt.name, id, id)
		if n := c.cuts.Load(); int(n) != i+1 {
			t.Fatalf("%s: %d connections were cut, want %d", tt.name, n, i+1)
		}
	}
	e.wantRows(5)
}

// HTTP ignores blanks around a header value. HTTP libraries do not send them, so
// the test writes the bytes itself.
func TestBlanksAroundAnIdempotencyKeyAreIgnored(t *testing.T) {
	eachEngine(t, envOptions{}, func(t *testing.T, e *env) {
		first := e.create("k", invoiceBody("A-1"))
		e.created(first)
		for _, spelt := range []string{" \tk", "k \t ", " \t k\t"} {
			head, text := e.rawCreation(spelt, invoiceBody("A-1"))
			wantReplay(t, strconv.Quote(spelt), first, e.dial(t).exchange(t, http.MethodPost, head+string(text)))
		}
	})
}

// overtakenPlan is the sandbox's plan. It calls a function once while it checks an invoice,
// which is after the creation has looked its key up.
type overtakenPlan struct {
	pipeline.Sandbox
	overtake atomic.Pointer[func()]
}

func (p *overtakenPlan) Check(ctx context.Context, scope store.Scope, inv *fiscal.Invoice) error {
	if overtake := p.overtake.Swap(nil); overtake != nil {
		(*overtake)()
	}
	return p.Sandbox.Check(ctx, scope, inv)
}

// A creation finds its key in use, because an equal one was quicker, or its external id.
// Then the database fails over to a copy that lacks the row, before the creation reads it.
// The answer must not be 404: the same request succeeds after a moment.
func TestRowThatVanishesInAFailoverIsAnswered503(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		plan := new(overtakenPlan)
		e := newEnv(t, address, envOptions{plan: plan})
		forget := []string{`DROP TRIGGER idempotency_no_delete`, `DELETE FROM idempotency`}
		if e.store.Engine() == "postgres" {
			forget = []string{`SET session_replication_role = replica`, `DELETE FROM idempotency`}
		}
		e.created(e.create("k", invoiceBody("A-1")))
		conn, err := e.database(t).Conn(t.Context())
		e.must(err)
		for _, tt := range []struct {
			name, key, externalID string
			failover              []string
		}{
			{"external id", "another key", "A-1", []string{`UPDATE documents SET external_id = 'A-0'`}},
			{"key", "another key", "A-2", forget},
		} {
			quicker := func() { e.created(e.create(tt.key, invoiceBody(tt.externalID))) }
			if tt.name == "key" {
				plan.overtake.Store(&quicker)
			}
			var once sync.Once
			e.store.OnCommit(func(_ time.Duration, err error) {
				if errors.Is(err, store.ErrExternalIDTaken) || err != nil && strings.Contains(err.Error(), "the idempotency key exists") {
					once.Do(func() { executeAll(t, conn, tt.failover...) })
				}
			})
			a := e.create(tt.key, invoiceBody(tt.externalID))
			wantCode(t, tt.name, a, http.StatusServiceUnavailable, "service_unavailable")
			if a.header.Get("Retry-After") == "" {
				t.Errorf("%s: no Retry-After", tt.name)
			}
		}
		e.created(e.create("k", invoiceBody("A-1"))) // the copy has neither the key nor the external id
	})
}

package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/apikey"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

const (
	slowClients     = 1000
	largeCreations  = 64
	documentsPerMin = 300
	strangerTime    = 10 * time.Second
	strangerRate    = 50  // creations per second of the tenant that is measured
	strangerMemory  = 512 // MiB, the limit of the process
)

// An attack is what others do while the creations of one tenant are measured. It
// returns when ctx ends.
type attack struct {
	name string
	run  func(ctx context.Context, s *service) error
}

// strangers compares the time of one tenant's creations while others misuse the
// service with the quiet time of the same run.
func (b *bench) strangers(ctx context.Context) error {
	limits := []string{"--rate-limit", "1000000", "--memory-limit", fmt.Sprintf("%dMiB", strangerMemory)}
	for _, engine := range storetest.Engines() {
		address, err := b.database(engine, "strangers")
		if err != nil {
			return err
		}
		s, err := b.startIn(ctx, "sandbox", address, limits...)
		if err != nil {
			return err
		}
		other, err := b.newTenant(ctx, s)
		if err != nil {
			return errors.Join(err, s.stop())
		}
		err = b.underAttack(ctx, engine, s, []attack{
			{fmt.Sprintf("%d slow readers", slowClients), slowReaders},
			{fmt.Sprintf("%d slow writers", slowClients), slowWriters(other)},
			{fmt.Sprintf("%d parallel creations of 1 MiB", largeCreations), largeBodies(other)},
			{"a flood of wrong keys", wrongKeys},
		})
		if err := errors.Join(err, s.stop()); err != nil {
			return err
		}
		live, err := b.startLive(ctx, engine, "strangers_live", 0, limits...)
		if err != nil {
			return err
		}
		// Without the authority the documents wait: only creations are measured.
		_ = live.simulator.Process.Kill() // stop waits for its end
		err = b.underAttack(ctx, engine, live.service, []attack{{fmt.Sprintf("%d documents of 8 MB a minute", documentsPerMin), foreignDocuments}})
		if err := errors.Join(err, live.stop()); err != nil {
			return err
		}
	}
	return nil
}

// underAttack measures the creations of a tenant beside each attack, and alone before
// and after it.
func (b *bench) underAttack(ctx context.Context, engine string, s *service, attacks []attack) error {
	next, run := s.newInvoices(s.key), 0
	measure := func(d time.Duration) ([]time.Duration, error) {
		run++
		got, err := s.open(ctx, 16, strangerRate, d, func(n int) []byte { return next(run, n) })
		if err == nil && len(got.statuses) > 1 {
			err = fmt.Errorf("answers by status: %v", got.statuses)
		}
		return got.durations[http.StatusAccepted], err
	}
	if _, err := measure(strangerTime / 2); err != nil { // the first creations open connections and fill caches
		return err
	}
	for _, a := range attacks {
		b.say("%s on %s", a.name, engine)
		before, err := measure(strangerTime / 2)
		if err != nil {
			return err
		}
		attacking, stop := context.WithCancel(ctx)
		done := make(chan error, 1)
		go func() { done <- a.run(attacking, s) }()
		time.Sleep(time.Second) // so that the attack is under way
		beside, err := measure(strangerTime)
		stop()
		if err := errors.Join(err, <-done); err != nil {
			return fmt.Errorf("%s: %w", a.name, err)
		}
		time.Sleep(time.Second) // so that its last requests are answered
		after, err := measure(strangerTime / 2)
		if err != nil {
			return err
		}
		peak, err := s.peakMemory()
		if err != nil {
			return err
		}
		measured, quiet := p99(beside), p99(append(before, after...))
		b.row(fmt.Sprintf("creation p99 at %d/s, %s, beside %s", strangerRate, engine, a.name), milliseconds(measured), milliseconds(quiet),
			float64(measured)/float64(quiet), "< 2", "the same creations alone, before and after")
		b.row("  peak memory of the process so far", fmt.Sprintf("%d MiB", peak), fmt.Sprintf("%d MiB", strangerMemory),
			float64(peak)/strangerMemory, "< 1", "--memory-limit")
	}
	return nil
}

func p99(d []time.Duration) time.Duration {
	return result{durations: map[int][]time.Duration{0: d}}.quantile(0, 0.99)
}

// newTenant returns the service as another taxpayer uses it.
func (b *bench) newTenant(ctx context.Context, s *service) (*service, error) {
	other := *s
	var err error
	if other.taxpayer, err = b.field(ctx, s.database, "id", "taxpayer", "create", "--rnc", "199000021", "--legal-name", "Otra, SRL", "--address", "Calle 2"); err != nil {
		return nil, err
	}
	other.key, err = b.newKey(ctx, &other)
	return &other, err
}

// peakMemory returns the most memory that the process has had, in MiB.
func (s *service) peakMemory() (int64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	found := regexp.MustCompile(`VmHWM:\s*(\d+) kB`).FindSubmatch(status)
	if found == nil {
		return 0, errors.New("this system does not show the memory of a process")
	}
	kib, err := strconv.ParseInt(string(found[1]), 10, 64)
	return kib >> 10, err
}

// openAll opens slow connections, sends a text on each, and closes them when ctx ends.
func openAll(ctx context.Context, s *service, dialer net.Dialer, text []byte) error {
	for range slowClients {
		c, err := dialer.DialContext(ctx, "tcp", s.address)
		if err != nil {
			return err
		}
		defer func() { _ = c.Close() }()
		if _, err := c.Write(text); err != nil {
			return err
		}
	}
	<-ctx.Done()
	return nil
}

// slowReaders ask for a long answer and do not read it.
func slowReaders(ctx context.Context, s *service) error {
	narrow := net.Dialer{Control: func(_, _ string, c syscall.RawConn) (err error) {
		set := func(fd uintptr) {
			err = errors.Join(syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 4<<10),
				syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, syscall.TCP_MAXSEG, 536))
		}
		return errors.Join(c.Control(set), err)
	}}
	return openAll(ctx, s, narrow, []byte("GET /v1/openapi.json HTTP/1.1\r\nHost: a\r\n\r\n"))
}

// slowWriters begin creations and do not complete them.
func slowWriters(other *service) func(context.Context, *service) error {
	return func(ctx context.Context, s *service) error {
		creation := other.post(other.key, "slow", bytes.Repeat([]byte(" "), 100_000))
		return openAll(ctx, s, net.Dialer{}, creation[:len(creation)-99_000])
	}
}

// largeBodies creates the largest invoices, one after the other on each connection.
func largeBodies(other *service) func(context.Context, *service) error {
	return func(ctx context.Context, _ *service) error {
		const placeholder = "00000000-0000000000"
		body := invoiceBody(placeholder, 1000)
		body = append(body, bytes.Repeat([]byte(" "), 1<<20-len(body))...)
		sample := other.post(other.key, placeholder, body)
		return untilEnd(ctx, other, largeCreations, func(client, n int) []byte {
			return bytes.ReplaceAll(sample, []byte(placeholder), fmt.Appendf(nil, "%08d-%010d", client, n))
		})
	}
}

// wrongKeys sends requests with well-formed keys that do not exist.
func wrongKeys(ctx context.Context, s *service) error {
	return untilEnd(ctx, s, clients, func(int, int) []byte {
		key, err := apikey.New(s.environment, rand.Reader)
		if err != nil {
			return nil
		}
		return s.getWith(key.Reveal(), "invoices")
	})
}

// foreignDocuments posts unsigned documents of 8 MB to the reception at a steady rate.
func foreignDocuments(ctx context.Context, s *service) error {
	var b strings.Builder
	b.WriteString("<ECF><Encabezado><IdDoc><eNCF>E310000000001</eNCF></IdDoc><Emisor><RNCEmisor>131880681</RNCEmisor></Emisor><Comprador>" +
		"<RNCComprador>199000013</RNCComprador></Comprador></Encabezado><DetallesItems>")
	for b.Len() < 8_000_000 {
		b.WriteString("<Item><NombreItem>" + strings.Repeat("Tornillo &amp; tuerca ", 20) + "</NombreItem></Item>")
	}
	b.WriteString("</DetallesItems></ECF>")
	request := fmt.Appendf(nil, "POST /fe/recepcion/api/ecf HTTP/1.1\r\nHost: a\r\nContent-Type: text/xml\r\nContent-Length: %d\r\n\r\n%s", b.Len(), b.String())
	tick := time.NewTicker(time.Minute / documentsPerMin)
	defer tick.Stop()
	var all sync.WaitGroup
	defer all.Wait()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			all.Go(func() {
				if c, err := dial(ctx, s.address); err == nil {
					_, _ = c.exchange(request) // its answer does not matter
					_ = c.Close()
				}
			})
		}
	}
}

// untilEnd sends requests over connections until ctx ends. It opens a connection again
// when the service has closed it.
func untilEnd(ctx context.Context, s *service, connections int, next func(client, n int) []byte) error {
	var all sync.WaitGroup
	for client := range connections {
		all.Go(func() {
			for n := 0; ctx.Err() == nil; {
				c, err := dial(ctx, s.address)
				if err != nil {
					continue
				}
				end := context.AfterFunc(ctx, func() { _ = c.Close() })
				for err == nil && ctx.Err() == nil {
					n++
					_, err = c.exchange(next(client, n))
				}
				end()
				_ = c.Close()
			}
		})
	}
	all.Wait()
	return nil
}

package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/apikey"
)

const (
	slowClients     = 1000
	largeCreations  = 64
	documentsPerMin = 300
)

// An attack is what others do while the creations of one tenant are measured.
type attack struct {
	name  string // the argument of the process that runs it
	title string
	run   func(ctx context.Context, s *service) error // returns when ctx ends
}

func attacks() []attack {
	return []attack{
		{"readers", fmt.Sprintf("%d slow readers", slowClients), slowReaders},
		{"writers", fmt.Sprintf("%d slow writers", slowClients), slowWriters},
		{"large", fmt.Sprintf("%d parallel creations of 1 MiB", largeCreations), largeBodies},
		{"keys", "a flood of wrong keys", wrongKeys},
		{"documents", fmt.Sprintf("%d documents of 8 MB a minute", documentsPerMin), foreignDocuments},
	}
}

// startAttack runs an attack in a process of its own that gets only processor time that
// is idle: others have their own machine, so their work must not take the time of the
// service or of the measurement. Without the command chrt it has the lowest priority. The
// returned function ends it.
func startAttack(ctx context.Context, name string, s *service) (stop func() error, err error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	args := []string{"nice", "-n", "19"}
	if exec.CommandContext(ctx, "chrt", "--idle", "0", "true").Run() == nil {
		args = []string{"chrt", "--idle", "0"}
	}
	args = append(args, program, attackArgument, name, s.address, s.environment, s.taxpayer, s.key)
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return func() error {
		return errors.Join(cmd.Process.Signal(os.Interrupt), cmd.Wait())
	}, nil
}

// attackArgument is the first argument of a process that runs an attack.
const attackArgument = "attack"

// runAttack runs the attack that startAttack named, until ctx ends.
func runAttack(ctx context.Context, args []string) error {
	if len(args) != 5 {
		return errors.New("an attack is started by the measurement strangers")
	}
	s := &service{address: args[1], environment: args[2], taxpayer: args[3], key: args[4]}
	for _, a := range attacks() {
		if a.name == args[0] {
			return a.run(ctx, s)
		}
	}
	return fmt.Errorf("there is no attack %s", args[0])
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
func slowWriters(ctx context.Context, s *service) error {
	creation := s.post(s.key, "slow", bytes.Repeat([]byte(" "), 100_000))
	return openAll(ctx, s, net.Dialer{}, creation[:len(creation)-99_000])
}

// largeBodies creates the largest invoices, one after the other on each connection.
func largeBodies(ctx context.Context, s *service) error {
	const placeholder = "00000000-0000000000"
	body := invoiceBody(placeholder, 1000)
	body = append(body, bytes.Repeat([]byte(" "), 1<<20-len(body))...)
	sample := s.post(s.key, placeholder, body)
	return untilEnd(ctx, s, largeCreations, func(client, n int) []byte {
		return bytes.ReplaceAll(sample, []byte(placeholder), fmt.Appendf(nil, "%08d-%010d", client, n))
	})
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

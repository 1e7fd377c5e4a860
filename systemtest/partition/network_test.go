//go:build linux

package partition

import (
	"context"
	"io"
	"net"
	"testing"
	"time"
)

// echo starts a server on a host that sends back what it receives, and returns its
// address.
func echo(t *testing.T, h *Host) string {
	t.Helper()
	listener, err := h.Listen(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return // the test has ended
			}
			go func() {
				_, _ = io.Copy(conn, conn)
				_ = conn.Close()
			}()
		}
	}()
	return listener.Addr().String()
}

// answers reports whether a text that is sent comes back within a time.
func answers(t *testing.T, conn net.Conn, within time.Duration) bool {
	t.Helper()
	if err := conn.SetDeadline(time.Now().Add(within)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, "hello"); err != nil {
		return false
	}
	_, err := io.ReadFull(conn, make([]byte, 5))
	return err == nil
}

func TestPacketsAreLostInOneDirection(t *testing.T) {
	t.Parallel()
	n := New(t, "one", "two", "three")
	one := n.Host("one")
	dial := func(address string) net.Conn {
		t.Helper()
		conn, err := one.Dial(t.Context(), "tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		return conn
	}
	two, three := echo(t, n.Host("two")), echo(t, n.Host("three"))
	toThree := dial(three)
	for _, from := range []string{"one", "two"} {
		to := map[string]string{"one": "two", "two": "one"}[from]
		toTwo := dial(two) // a new one: the last one may get its late answer
		if !answers(t, toTwo, time.Minute) {
			t.Fatal("no answer without a fault")
		}
		n.Break(from, to, Fault{Loss: 1})
		if answers(t, toTwo, 300*time.Millisecond) {
			t.Errorf("an answer while packets from %s to %s are lost", from, to)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		if conn, err := one.Dial(ctx, "tcp", two); err == nil {
			t.Errorf("a connection while packets from %s to %s are lost", from, to)
			_ = conn.Close()
		}
		cancel()
		if !answers(t, toThree, time.Minute) {
			t.Errorf("a fault between %s and %s affects another host", from, to)
		}
		n.Heal()
		if !answers(t, dial(two), time.Minute) {
			t.Error("no answer after the end of the fault")
		}
	}
	n.Break("one", "two", Fault{Delay: 100 * time.Millisecond})
	begun := time.Now()
	if !answers(t, dial(two), time.Minute) || time.Since(begun) < 100*time.Millisecond {
		t.Errorf("packets are not delayed: the answer came after %s", time.Since(begun))
	}
}

//go:build linux

package partition

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// A Host is a network namespace with one address.
type Host struct {
	Name    string
	Address netip.Addr

	namespace *os.File
	device    *os.File // the packets that it sends and receives
}

// newHost creates a namespace and its device, on a thread that ends afterwards.
func newHost(name string, address netip.Addr) (*Host, error) {
	h, result := &Host{Name: name, Address: address}, make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: no other goroutine may use the thread
		result <- h.create()
	}()
	if err := <-result; err != nil {
		h.close()
		return nil, fmt.Errorf("host %s: %w", name, err)
	}
	return h, nil
}

// create moves the thread into a new namespace and sets that up.
func (h *Host) create() error {
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("unshare: %w", err)
	}
	var err error
	if h.namespace, err = os.Open("/proc/thread-self/ns/net"); err != nil {
		return err
	}
	device, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("/dev/net/tun: %w", err)
	}
	tun, err := unix.NewIfreq("tun0")
	if err != nil {
		return err
	}
	tun.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
	if err := unix.IoctlIfreq(device, unix.TUNSETIFF, tun); err != nil {
		return errors.Join(fmt.Errorf("tun device: %w", err), unix.Close(device))
	}
	h.device = os.NewFile(uintptr(device), "tun0")
	return h.configure()
}

// configure gives the device its address and starts it, and the loopback device.
func (h *Host) configure() error {
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(socket) }()
	for _, step := range []struct {
		name    string
		request uint
		address netip.Addr
	}{
		{"tun0", unix.SIOCSIFADDR, h.Address},
		{"tun0", unix.SIOCSIFNETMASK, netip.AddrFrom4([4]byte{255, 255, 255, 0})},
		{"tun0", unix.SIOCSIFFLAGS, netip.Addr{}},
		{"lo", unix.SIOCSIFFLAGS, netip.Addr{}},
	} {
		r, err := unix.NewIfreq(step.name)
		if err != nil {
			return err
		}
		if step.address.IsValid() {
			bytes := step.address.As4()
			err = r.SetInet4Addr(bytes[:])
		} else {
			r.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
		}
		if err == nil {
			err = unix.IoctlIfreq(socket, step.request, r)
		}
		if err != nil {
			return fmt.Errorf("set up %s: %w", step.name, err)
		}
	}
	return nil
}

func (h *Host) close() {
	if h.device != nil {
		_ = h.device.Close()
	}
	if h.namespace != nil {
		_ = h.namespace.Close()
	}
}

// Do runs a function in the namespace of the host. Sockets that it opens and processes
// that it starts belong to the host. Goroutines that it starts do not.
func (h *Host) Do(do func() error) error {
	runtime.LockOSThread()
	home, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		runtime.UnlockOSThread()
		return err
	}
	defer func() {
		if err := unix.Setns(int(home.Fd()), unix.CLONE_NEWNET); err == nil {
			runtime.UnlockOSThread() // otherwise the thread ends with its goroutine
		}
		_ = home.Close()
	}()
	if err := unix.Setns(int(h.namespace.Fd()), unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("host %s: %w", h.Name, err)
	}
	return do()
}

// Dial connects from the host to an IP address.
func (h *Host) Dial(ctx context.Context, network, address string) (conn net.Conn, err error) {
	err = h.Do(func() error {
		conn, err = new(net.Dialer).DialContext(ctx, network, address)
		return err
	})
	return conn, err
}

// Listen listens at a port of the host, 0 for a free one.
func (h *Host) Listen(ctx context.Context, port uint16) (listener net.Listener, err error) {
	err = h.Do(func() error {
		listener, err = new(net.ListenConfig).Listen(ctx, "tcp", netip.AddrPortFrom(h.Address, port).String())
		return err
	})
	return listener, err
}

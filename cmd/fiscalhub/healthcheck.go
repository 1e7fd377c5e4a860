package main

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/lang"
)

type healthcheckCmd struct {
	Listen  string        `help:"Address that the server listens on, as in serve (default 127.0.0.1:8080)." default:"127.0.0.1:8080" placeholder:"ADDR"`
	TLSCert string        `name:"tls-cert" help:"Certificate of the server, as in serve: with it the command asks by TLS." placeholder:"FILE"`
	Live    bool          `help:"Ask only whether the process runs (/livez), not whether it can work (/readyz)."`
	Timeout time.Duration `help:"How long to wait for the answer." default:"5s"`
}

// healthView is the result of a health check in JSON.
type healthView struct {
	Address string `json:"address"`
	Status  int    `json:"status"`
}

// Run asks the server on this machine whether it works. It fails when the server does not
// answer, or answers that it does not work.
func (c healthcheckCmd) Run(t *terminal) error {
	address, err := c.address()
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(t.ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	// The certificate has the public name of the service and not this address. The question
	// has no secret, and the answer is one of this machine.
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // see above
	defer transport.CloseIdleConnections()
	client := http.Client{Transport: transport, Timeout: c.Timeout}
	answer, err := client.Do(request)
	if err != nil {
		return lang.Errorf("%s does not answer: %s", "%s no responde: %s", address, err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, 512))
	if err != nil {
		return lang.Errorf("%s does not answer: %s", "%s no responde: %s", address, err)
	}
	if answer.StatusCode != http.StatusOK {
		text := printable(strings.TrimSpace(string(body)))
		return lang.Errorf("%s answers %d: %s", "%s responde %d: %s", address, answer.StatusCode, text)
	}
	return t.answer(healthView{address, answer.StatusCode}, func(w io.Writer) {
		line(w, "ok", address)
	})
}

// address returns the address to ask. A server that listens on all addresses of the machine
// is asked at its loopback address.
func (c healthcheckCmd) address() (string, error) {
	host, port, err := net.SplitHostPort(c.Listen)
	if err != nil {
		return "", wrongUsage("--listen must be an address like 127.0.0.1:8080", "--listen debe ser una dirección como 127.0.0.1:8080")
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
		if ip != nil && ip.To4() == nil {
			host = "::1"
		}
	}
	scheme, path := "http", "/readyz"
	if c.TLSCert != "" {
		scheme = "https"
	}
	if c.Live {
		path = "/livez"
	}
	return fmt.Sprintf("%s://%s%s", scheme, net.JoinHostPort(host, port), path), nil
}

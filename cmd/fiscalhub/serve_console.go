package main

import (
	"net"
	"path/filepath"
	"strings"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/node"
)

// consoleFlags are the flags of serve for the console.
type consoleFlags struct {
	Console                    bool   `help:"Serve the console under /console/, at the address of the API. The sandbox always does, unless the console has a listener of its own."`
	ConsoleListen              string `help:"Address of a separate listener for the console." placeholder:"ADDR"`
	ConsoleBaseURL             string `name:"console-base-url" help:"Public address of the console, used in links. By default that of its listener." placeholder:"URL"`
	ConsoleRequireSecondFactor bool   `help:"Operators must set up a second factor before they use the console."`
}

// serves reports whether the process serves the console in an environment.
func (f consoleFlags) serves(env fiscal.Environment) bool {
	return f.Console || f.ConsoleListen != "" || env == fiscal.Sandbox
}

func (f consoleFlags) check() error {
	if f.ConsoleBaseURL == "" {
		return nil
	}
	return checkConsoleURL(f.ConsoleBaseURL)
}

// checkConsoleURL returns a usageError when an address cannot be the public address of the
// console.
func checkConsoleURL(address string) error {
	return checkPublicURL("--console-base-url", address)
}

// console returns the configuration of the console; nil when the process serves none. own is
// its listener, if it has one of its own.
func (f consoleFlags) console(t *terminal, config serveConfig, own net.Listener) *node.ConsoleConfig {
	if !f.serves(config.env) {
		return nil
	}
	c := &node.ConsoleConfig{
		BaseURL: config.baseURL, Apart: own != nil, RequireSecondFactor: f.ConsoleRequireSecondFactor, Exports: filepath.Join(t.cli.Data, "exports"),
	}
	if own != nil {
		c.BaseURL = config.address(f.ConsoleListen, own)
	}
	if f.ConsoleBaseURL != "" {
		c.BaseURL = strings.TrimRight(f.ConsoleBaseURL, "/")
	}
	return c
}

// Command fiscalhub is the electronic fiscal invoicing service and its
// operator's tool, in one binary.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"
)

const (
	exitOK    = 0
	exitFail  = 1
	exitUsage = 2
)

func main() {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	go func() {
		sig := <-signals
		signal.Stop(signals) // a second signal ends the process at once
		cancel(stopSignal{sig})
	}()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// stopSignal is why the process was asked to stop.
type stopSignal struct{ os.Signal }

func (s stopSignal) Error() string { return "stopped by " + s.String() }

// cli is every command and the flags they share.
type cli struct {
	JSON      bool   `name:"json" help:"Answer in JSON on standard output."`
	Data      string `help:"Folder of the database, the master key and the witness; ./data unless told." default:"./data" placeholder:"DIR"`
	Database  string `help:"Database: sqlite:PATH, or postgres://… for a server. By default a SQLite file in the data folder." placeholder:"URL"`
	MasterKey string `help:"Master key file; by default in the data folder, and made on first use." placeholder:"FILE"`

	Serve       serveCmd       `cmd:"" help:"Run the API and its workers."`
	Taxpayer    taxpayerCmd    `cmd:"" help:"Create and show the taxpayers that invoices are issued for."`
	Credential  credentialCmd  `cmd:"" help:"Issue, rotate and revoke the API keys of integrators."`
	Certificate certificateCmd `cmd:"" help:"Import and list the certificates that taxpayers sign with."`
	Sequence    sequenceCmd    `cmd:"" help:"Add and list the ranges of fiscal numbers."`
	ECF         ecfCmd         `cmd:"" name:"ecf" help:"Sign, verify and print single documents, offline."`
	Check       checkCmd       `cmd:"" help:"Run the checks that an integrator makes against a running sandbox."`
	History     historyCmd     `cmd:"" help:"Print everything that happened to one operation, in order."`
	Work        workCmd        `cmd:"" help:"List, show and decide on the documents that wait."`
	Reconcile   reconcileCmd   `cmd:"" help:"Release ranges of numbers that a restore has fenced, after asking the tax authority."`
	Webhook     webhookCmd     `cmd:"" help:"Look after the endpoints that are told of events, and what they were told."`
	Source      sourceCmd      `cmd:"" help:"Look after those who may tell signed events about documents."`
	Demo        demoCmd        `cmd:"" help:"Show the whole tour in one process, against a simulator of the tax authority."`
	Simulator   simulatorCmd   `cmd:"" help:"Run a simulator of the tax authority, with a control API."`
	Migrate     migrateCmd     `cmd:"" help:"Bring the tables of the database up to date."`
	Backup      backupCmd      `cmd:"" help:"Copy a SQLite database into a new file, while it runs."`
	Master      masterCmd      `cmd:"" name:"master-key" help:"Rotate the master key, under which secrets are sealed."`
	Version     versionCmd     `cmd:"" help:"Print the version."`
}

// run executes one command line and returns the exit code.
func run(ctx context.Context, args []string, out, errOut io.Writer) int {
	var c cli
	stopped, stopCode := false, exitOK
	parser, err := kong.New(&c,
		kong.Name("fiscalhub"),
		kong.Description("Electronic fiscal invoicing for the Dominican Republic.\n\n"+
			"Start with `fiscalhub serve`: it runs a sandbox and prints a request to try. "+
			"Every flag can also be set by an environment variable, FISCALHUB_ and the flag's name in capitals."),
		kong.Writers(out, errOut),
		kong.DefaultEnvars("FISCALHUB"),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.UsageOnError(),
		kong.Exit(func(code int) { stopped, stopCode = true, code }), // --help has been answered
	)
	if err != nil {
		return fail(errOut, err)
	}
	if len(args) == 0 {
		args = []string{"--help"}
	}
	parsed, err := parser.Parse(args)
	if stopped {
		return stopCode
	}
	if err != nil {
		_, _ = fmt.Fprintf(errOut, "fiscalhub: %s\nSee fiscalhub --help, or fiscalhub COMMAND --help.\n", err)
		return exitUsage
	}
	t := &terminal{ctx: ctx, cli: &c, out: out, errOut: errOut}
	err = parsed.Run(t)
	var usage usageError
	switch {
	case errors.As(err, &usage):
		_, _ = fmt.Fprintf(errOut, "fiscalhub: %s\n", err)
		return exitUsage
	case err != nil:
		return fail(errOut, err)
	}
	return exitOK
}

func fail(errOut io.Writer, err error) int {
	_, _ = fmt.Fprintf(errOut, "fiscalhub: %s\n", oneLine(err))
	return exitFail
}

// usageError is a command line that cannot be carried out as it is.
type usageError string

func (e usageError) Error() string { return string(e) }

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
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/fiscalhub/fiscalhub/internal/audit"
	"github.com/fiscalhub/fiscalhub/internal/lang"
)

const (
	exitOK    = 0
	exitFail  = 1
	exitUsage = 2
)

func main() {
	unsetEmpty(os.Environ(), os.Unsetenv)
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

// unsetEmpty removes the variables of flags that are empty. They stand for the default, as
// an unset variable does: an empty FISCALHUB_LISTEN must not open another address.
func unsetEmpty(environ []string, unset func(string) error) {
	for _, variable := range environ {
		if name, value, _ := strings.Cut(variable, "="); value == "" && strings.HasPrefix(name, "FISCALHUB_") {
			_ = unset(name) // a name that is set is valid
		}
	}
}

// stopSignal is the cause of a context that a signal has cancelled.
type stopSignal struct{ os.Signal }

func (s stopSignal) Error() string { return "stopped by " + s.String() }

// cli has one field for each command, and the flags that all commands share.
type cli struct {
	JSON        bool             `name:"json" help:"Print the answer as JSON on standard output."`
	Lang        string           `name:"lang" enum:"en,es," default:"" help:"Language of messages: en or es. By default that of the terminal (LC_ALL, LC_MESSAGES, LANG). Help texts are in English." placeholder:"LANG"`
	ShowVersion kong.VersionFlag `name:"version" env:"-" help:"Print the version."`
	Wide        bool             `help:"Do not shorten the columns of a table to the width of the terminal."`
	Data        string           `help:"Folder of the database, the master key and the witness (default ./data)." default:"./data" placeholder:"DIR"`
	Database    string           `help:"Database: sqlite:PATH, or postgres://… for a server. By default a SQLite file in the data folder." placeholder:"URL"`
	Actor       string           `help:"Name in the audit log of the person who changes something. By default the user and host of the operating system. audit list shows only the entries of this person." placeholder:"NAME"`
	MasterKey   string           `help:"Master key file. By default master.key in the data folder, created on first use." placeholder:"FILE"`

	Serve       serveCmd       `cmd:"" help:"Run the API, the background workers and the console."`
	Onboard     onboardCmd     `cmd:"" help:"Prepare a taxpayer for its first live invoice: address, certificate, numbers, API key."`
	Taxpayer    taxpayerCmd    `cmd:"" help:"Create, change, show and suspend the taxpayers that issue invoices."`
	Credential  credentialCmd  `cmd:"" help:"Issue, rotate, suspend and revoke the API keys of integrators."`
	Environment environmentCmd `cmd:"" help:"Suspend and resume a whole environment."`
	Certificate certificateCmd `cmd:"" help:"Import, list and revoke the certificates that sign documents."`
	Range       rangeCmd       `cmd:"" help:"Add and list ranges of fiscal numbers (e-NCF)."`
	Sequence    rangeCmd       `cmd:"" hidden:"" help:"The same as range."`
	ECF         ecfCmd         `cmd:"" name:"ecf" help:"Sign, verify and print single documents offline."`
	Check       checkCmd       `cmd:"" help:"Check a running sandbox as an integrator would."`
	Send        sendCmd        `cmd:"" help:"Send many invoices from a file. May be interrupted and repeated; no invoice is made twice."`
	History     historyCmd     `cmd:"" help:"Print the history of one invoice, oldest entry first."`
	Work        workCmd        `cmd:"" help:"List and show documents that are not final, and record an operator's decision."`
	Reconcile   reconcileCmd   `cmd:"" help:"After a restore: ask the tax authority about the missing numbers, and release the fenced ranges."`
	Webhook     webhookCmd     `cmd:"" help:"Manage webhook endpoints and their deliveries."`
	Buyer       buyerCmd       `cmd:"" help:"Manage the persons who sign commercial responses for buyers."`
	Source      sourceCmd      `cmd:"" help:"Manage the sources that may send signed events about documents."`
	Demo        demoCmd        `cmd:"" help:"Run a complete demonstration in one process, with a simulator of the tax authority."`
	Simulator   simulatorCmd   `cmd:"" help:"Run a simulator of the tax authority, with a control API."`
	User        userCmd        `cmd:"" help:"Create, list, disable and reset the people of the console, and change their roles."`
	Audit       auditCmd       `cmd:"" help:"List and verify the log of what operators have changed."`
	Export      exportCmd      `cmd:"" help:"Write the documents of a taxpayer into a ZIP file, and check such files."`
	Healthcheck healthcheckCmd `cmd:"" help:"Ask the server on this machine whether it works. For the health checks of containers."`
	Doctor      doctorCmd      `cmd:"" help:"Check what a server depends on: permissions, keys, clock, database, disk, trust, the tax authority. Each line says what to do."`
	Migrate     migrateCmd     `cmd:"" help:"Migrate the database to the schema of this version."`
	Backup      backupCmd      `cmd:"" help:"Copy a SQLite database into a new file, also while the service runs."`
	Keys        keysCmd        `cmd:"" help:"List, rotate and drop the service's own keys, while servers run."`
	Master      masterCmd      `cmd:"" name:"master-key" help:"Rotate the master key, which encrypts the stored secrets."`
	Version     versionCmd     `cmd:"" help:"Print the version."`
	Help        helpCmd        `cmd:"" help:"Print the help of a command or of a topic."`
	Completion  completionCmd  `cmd:"" help:"Print the script that completes command lines in bash, zsh or fish."`
	Man         manCmd         `cmd:"" help:"Write the manual pages."`
	Complete    completeCmd    `cmd:"" hidden:"" help:"Print what may follow in a command line."`
}

// run executes one command line and returns the exit code: 0 on success, 1 when
// the command failed, 2 when the command line is wrong.
func run(ctx context.Context, args []string, out, errOut io.Writer) int {
	var c cli
	language := languageOf(args, os.Getenv)
	stopped, stopCode := false, exitOK
	parser, err := kong.New(&c,
		kong.Name("fiscalhub"),
		kong.Description("Electronic fiscal invoicing for the Dominican Republic.\n\n"+
			"Start with `fiscalhub serve`: it runs a sandbox and prints a request to try. "+
			"Every flag has an environment variable: FISCALHUB_ and the name of the flag in capitals. A flag wins over its variable."),
		kong.Writers(out, errOut),
		kong.DefaultEnvars("FISCALHUB"),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.UsageOnError(),
		kong.Vars{"version": "fiscalhub " + version},
		kong.Exit(func(code int) { stopped, stopCode = true, code }), // kong has printed the help
	)
	if err != nil {
		return fail(errOut, err, language)
	}
	addExamples(parser.Model)
	if len(args) == 0 {
		args = []string{"--help"}
	}
	parsed, err := parser.Parse(args)
	if stopped {
		return stopCode
	}
	if err != nil {
		hint := lang.Messagef("See fiscalhub --help, or fiscalhub COMMAND --help.", "Vea fiscalhub --help o fiscalhub COMANDO --help.")
		_, _ = fmt.Fprintf(errOut, "fiscalhub: %s\n%s\n", oneLineIn(parserError(err), language), hint.In(language))
		return exitUsage
	}
	t := &terminal{ctx: audit.WithCaller(ctx, commandCaller(c.Actor)), cli: &c, out: out, errOut: errOut, language: language}
	err = parsed.Run(t, parser)
	var usage usageError
	switch {
	case errors.As(err, &usage):
		_ = fail(errOut, err, language)
		return exitUsage
	case err != nil:
		return fail(errOut, err, language)
	}
	return exitOK
}

func fail(errOut io.Writer, err error, language lang.Language) int {
	_, _ = fmt.Fprintf(errOut, "fiscalhub: %s\n", oneLineIn(withAdvice(err), language))
	return exitFail
}

package main

import (
	"strings"

	"github.com/alecthomas/kong"

	"github.com/fiscalhub/fiscalhub/internal/lang"
)

// addExamples adds the examples of each command to its help.
func addExamples(model *kong.Application) {
	all := examples()
	visitCommands(model.Node, func(n *kong.Node) {
		lines := all[commandPath(n)]
		if len(lines) == 0 {
			return
		}
		n.Detail = strings.TrimSpace(n.Detail + "\n\nExamples:\n\n  " + strings.Join(lines, "\n  "))
	})
}

// visitCommands calls fn with every command below a node, in the order of the help.
func visitCommands(n *kong.Node, fn func(*kong.Node)) {
	for _, child := range n.Children {
		if child.Hidden {
			continue
		}
		fn(child)
		visitCommands(child, fn)
	}
}

// commandPath returns the words that name a command, like "taxpayer create".
func commandPath(n *kong.Node) string {
	if n.Parent == nil || n.Parent.Type == kong.ApplicationNode {
		return n.Name
	}
	return commandPath(n.Parent) + " " + n.Name
}

type helpCmd struct {
	Topic []string `arg:"" optional:"" help:"A command, like taxpayer create; or environments, exit-codes, files or variables."`
}

// topics are the pages of help that belong to no command.
func topics() map[string]string {
	return map[string]string{
		"environments": `A process serves one environment; one database may hold all three.

  sandbox        plays the tax authority itself. Nothing is signed or sent.
  certification  sends to the authority's environment for certification, or to
                 a simulator with --authority.
  production     issues real fiscal documents.

Credentials, certificates, ranges of numbers and invoices belong to one
taxpayer in one environment.`,
		"exit-codes": `0  the command has succeeded
1  the command has failed; one line on standard error says why
2  the command line is wrong; nothing was done`,
		"files": `The data folder (--data, by default ./data) has:

  fiscalhub.db          the SQLite database, unless --database names another
  master.key            the key that encrypts the secrets of the database. Keep
                        a copy of it apart from the backups of the database
  witness-ENV           the highest numbers that were sent. Never restore it
                        from a backup

Only the user who runs the service may read these files.`,
		"variables": `Every flag has an environment variable: FISCALHUB_ and the name of the flag in
capitals, with _ instead of -. For example FISCALHUB_DATABASE is --database. A
flag wins over its variable.`,
	}
}

// Run prints the help of a command or of a topic.
func (c helpCmd) Run(t *terminal, parser *kong.Kong) error {
	if text, ok := topics()[strings.Join(c.Topic, " ")]; ok {
		_, err := t.out.Write([]byte(text + "\n"))
		return err
	}
	found, err := kong.Trace(parser, c.Topic)
	if err == nil && (found.Error != nil || len(found.Path) != len(c.Topic)+1) {
		err = lang.Errorf("no such command", "no existe ese comando")
	}
	if err != nil {
		return wrongUsage("there is no command or topic %s: see fiscalhub --help; topics are environments, exit-codes, files and variables",
			"no existe el comando o tema %s: vea fiscalhub --help; los temas son environments, exit-codes, files y variables", strings.Join(c.Topic, " "))
	}
	return found.PrintUsage(false)
}

package main

import (
	"fmt"
	"os"
	"path/filepath"
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

type manCmd struct {
	Out string `required:"" help:"Folder to write the pages to." placeholder:"DIR"`
}

// Run writes a manual page for the program and one for each command.
func (c manCmd) Run(t *terminal, parser *kong.Kong) error {
	if err := os.MkdirAll(c.Out, 0o755); err != nil { //nolint:gosec // everybody may read manual pages
		return err
	}
	pages := map[string]string{"fiscalhub": manPage(parser.Model.Node)}
	visitCommands(parser.Model.Node, func(n *kong.Node) {
		pages["fiscalhub-"+strings.ReplaceAll(commandPath(n), " ", "-")] = manPage(n)
	})
	for name, page := range pages {
		if err := os.WriteFile(filepath.Join(c.Out, name+".1"), []byte(page), 0o644); err != nil { //nolint:gosec // everybody may read manual pages
			return err
		}
	}
	t.progress(lang.Messagef("%d pages are in %s", "%d páginas están en %s", len(pages), c.Out))
	return nil
}

// manPage returns the manual page of a command, in the macros of man(7).
func manPage(n *kong.Node) string {
	name, synopsis := "fiscalhub", "fiscalhub COMMAND [FLAGS]"
	if n.Type != kong.ApplicationNode {
		name = "fiscalhub " + commandPath(n)
		synopsis = name + " " + strings.TrimSpace(strings.TrimPrefix(n.Summary(), n.Path()))
	}
	dashed := strings.ReplaceAll(name, " ", "-")
	var b strings.Builder
	fmt.Fprintf(&b, ".TH %s 1 \"\" \"fiscalhub %s\"\n.SH NAME\n%s \\- %s\n.SH SYNOPSIS\n.B %s\n",
		strings.ToUpper(roff(dashed)), version, roff(dashed), roff(firstSentence(n.Help)), roff(synopsis))
	if detail, examples, _ := strings.Cut(n.Detail, "Examples:\n"); detail != "" || examples != "" {
		b.WriteString(".SH DESCRIPTION\n" + roff(strings.TrimSpace(n.Help+"\n\n"+detail)) + "\n")
		if examples = strings.Trim(examples, "\n"); examples != "" {
			b.WriteString(".SH EXAMPLES\n.nf\n" + roff(examples) + "\n.fi\n")
		}
	} else {
		b.WriteString(".SH DESCRIPTION\n" + roff(n.Help) + "\n")
	}
	if len(n.Children) > 0 {
		b.WriteString(".SH COMMANDS\n")
		for _, child := range n.Children {
			if !child.Hidden {
				fmt.Fprintf(&b, ".TP\n.B %s\n%s\n", roff(child.Name), roff(child.Help))
			}
		}
	}
	b.WriteString(".SH FLAGS\n")
	for _, f := range flagsOf(n) {
		fmt.Fprintf(&b, ".TP\n.B %s\n%s\n", roff(f.String()), roff(f.Help))
	}
	b.WriteString(".SH EXIT STATUS\n" + roff(topics()["exit-codes"]) + "\n")
	return b.String()
}

// firstSentence returns a text up to its first period.
func firstSentence(text string) string {
	first, _, _ := strings.Cut(text, ". ")
	return strings.TrimSuffix(first, ".")
}

// roff escapes a text for man(7). An empty line begins a paragraph.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		switch {
		case line == "":
			lines[i] = ".PP"
		case strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'"):
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}

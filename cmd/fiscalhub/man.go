package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/fiscalhub/fiscalhub/internal/lang"
)

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
	t.progress(lang.Messagef("%d pages are in %s",
		"%d páginas están en %s", len(pages), c.Out))
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

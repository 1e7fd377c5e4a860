package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/fiscalhub/fiscalhub/internal/lang"
)

// asker gets the answers that onboarding needs: from flags, or from a person at the terminal.
type asker struct {
	in       *bufio.Reader
	terminal *os.File // nil: standard input is not a terminal
	out      io.Writer
	missing  []string // required flags without an answer, without a terminal
	language lang.Language
}

// newAsker returns an asker that asks only when standard input is a terminal.
func newAsker(in *os.File, out io.Writer, silent bool, language lang.Language) *asker {
	a := &asker{in: bufio.NewReader(in), out: out, language: language}
	if !silent && term.IsTerminal(int(in.Fd())) {
		a.terminal = in
	}
	return a
}

// A question is one answer that onboarding needs.
type question struct {
	flag     string
	text     lang.Message
	given    string // the value of the flag
	optional bool
	check    func(string) error // nil accepts every text
}

// ask returns the answer to a question. Without a terminal it returns "" and
// remembers a required flag as missing.
func (a *asker) ask(q question) (string, error) {
	check := q.check
	if check == nil {
		check = func(string) error { return nil }
	}
	if q.given != "" {
		if err := check(q.given); err != nil {
			return "", usageOf(q.flag, err)
		}
		return q.given, nil
	}
	if a.terminal == nil {
		if !q.optional {
			a.missing = append(a.missing, "--"+q.flag)
		}
		return "", nil
	}
	for {
		answer, err := a.read(q)
		if err != nil {
			return "", err
		}
		switch {
		case answer == "" && q.optional:
			return "", nil
		case answer == "":
			a.say(lang.Messagef("    Please give an answer, or press Ctrl-C to stop. What is done stays done.",
				"    Responda, o presione Ctrl-C para salir. Lo hecho se conserva."))
			continue
		}
		if err := check(answer); err != nil {
			a.say(lang.Messagef("    %s", "    %s", err))
			continue
		}
		return answer, nil
	}
}

func (a *asker) read(q question) (string, error) {
	_, _ = fmt.Fprintf(a.out, "  %s: ", q.text.In(a.language))
	text, err := a.in.ReadString('\n')
	if errors.Is(err, io.EOF) && strings.TrimSpace(text) == "" {
		return "", lang.Errorf("the input ended before every question was answered; run the command again to continue",
			"la entrada terminó antes de responder todas las preguntas; ejecute el comando otra vez para continuar")
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	return strings.TrimSpace(text), nil
}

// password asks for a password and does not show what is typed.
func (a *asker) password(text lang.Message) (string, error) {
	_, _ = fmt.Fprintf(a.out, "  %s: ", text.In(a.language))
	typed, err := term.ReadPassword(int(a.terminal.Fd()))
	a.say(lang.Message{})
	return string(typed), err
}

// say prints a line to the person.
func (a *asker) say(m lang.Message) { _, _ = fmt.Fprintln(a.out, m.In(a.language)) }

// complete returns a usageError that names every missing flag.
func (a *asker) complete() error {
	if len(a.missing) == 0 {
		return nil
	}
	return wrongUsage("standard input is not a terminal, so these flags are needed: %s",
		"la entrada estándar no es una terminal, así que faltan estas opciones: %s", strings.Join(a.missing, ", "))
}

package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// asker gets the answers of a walk: from flags, or from a person at the terminal.
type asker struct {
	in       *bufio.Reader
	terminal *os.File // nil: standard input is not a terminal
	out      io.Writer
	missing  []string // required flags without an answer, without a terminal
}

// newAsker returns an asker that asks only when standard input is a terminal.
func newAsker(in *os.File, out io.Writer, silent bool) *asker {
	a := &asker{in: bufio.NewReader(in), out: out}
	if !silent && term.IsTerminal(int(in.Fd())) {
		a.terminal = in
	}
	return a
}

// A question is one answer that a walk needs.
type question struct {
	flag     string
	text     string
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
			return "", usageError("--" + q.flag + ": " + err.Error())
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
			a.say("    Please give an answer, or press Ctrl-C to stop. What is done stays done.")
			continue
		}
		if err := check(answer); err != nil {
			a.say("    %s", err)
			continue
		}
		return answer, nil
	}
}

func (a *asker) read(q question) (string, error) {
	_, _ = fmt.Fprintf(a.out, "  %s: ", q.text)
	text, err := a.in.ReadString('\n')
	if errors.Is(err, io.EOF) && strings.TrimSpace(text) == "" {
		return "", errors.New("the input ended before every question was answered; run the command again to continue")
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	return strings.TrimSpace(text), nil
}

// password asks for a password and does not show what is typed.
func (a *asker) password(text string) (string, error) {
	_, _ = fmt.Fprintf(a.out, "  %s: ", text)
	typed, err := term.ReadPassword(int(a.terminal.Fd()))
	a.say("")
	return string(typed), err
}

// say prints a line to the person.
func (a *asker) say(format string, args ...any) {
	_, _ = fmt.Fprintf(a.out, format+"\n", args...)
}

// complete returns a usageError that names every missing flag.
func (a *asker) complete() error {
	if len(a.missing) == 0 {
		return nil
	}
	return usageError("standard input is not a terminal, so these flags are needed: " + strings.Join(a.missing, ", "))
}

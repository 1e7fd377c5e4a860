package main

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/fiscalhub/fiscalhub/internal/lang"
)

// checkState says how a check ended.
type checkState string

const (
	statePassed  checkState = "ok"
	stateWarning checkState = "warning" // the service works, but an operator must act
	stateFailed  checkState = "failed"  // the service does not work, or is not safe
)

// checkOutcome is what a check has found.
type checkOutcome struct {
	state  checkState
	found  lang.Message // a sentence
	action lang.Message // what to do; empty when there is nothing to do
}

func passed(found lang.Message) []checkOutcome {
	return []checkOutcome{{statePassed, found, lang.Message{}}}
}

func warned(found, action lang.Message) []checkOutcome {
	return []checkOutcome{{stateWarning, found, action}}
}

func failed(found, action lang.Message) []checkOutcome {
	return []checkOutcome{{stateFailed, found, action}}
}

func orPassed(o []checkOutcome, found lang.Message) []checkOutcome {
	if len(o) == 0 {
		return passed(found)
	}
	return o
}

// finding is an outcome with the name of its check.
type finding struct {
	group, name string
	checkOutcome
}

// findingView is a finding in JSON. Detail is complete: it also has the action.
type findingView struct {
	Group  string     `json:"group"`
	Name   string     `json:"name"`
	State  checkState `json:"state"`
	OK     bool       `json:"ok"` // false only for failed
	Detail string     `json:"detail"`
	Action string     `json:"action"`
}

// printFindings prints the findings, and fails when one of them is a failure.
func (t *terminal) printFindings(found []finding) error {
	view := struct {
		Checks []findingView `json:"checks"`
	}{Checks: make([]findingView, len(found))}
	count := map[checkState]int{}
	for i, f := range found {
		count[f.state]++
		view.Checks[i] = findingView{f.group, f.name, f.state, f.state != stateFailed, strings.TrimSpace(f.found.String() + " " + f.action.String()), f.action.String()}
	}
	summary := lang.Messagef("%d ok, %d with a warning, %d failed", "%d bien, %d con aviso, %d con falla",
		count[statePassed], count[stateWarning], count[stateFailed]).In(t.language)
	err := t.answer(view, func(w io.Writer) {
		group := ""
		for _, f := range found {
			if f.group != group {
				if group != "" {
					_, _ = fmt.Fprintln(w)
				}
				group = f.group
				_, _ = fmt.Fprintln(w, checkName(group, t.language))
			}
			f.print(w)
		}
		_, _ = fmt.Fprintf(w, "\n%s\n", summary)
	})
	if err == nil && count[stateFailed] > 0 {
		err = lang.Errorf("%d of %d checks failed: do what the lines marked FAILED say",
			"%d de %d revisiones fallaron: haga lo que dicen las líneas marcadas FALLÓ", count[stateFailed], len(found))
	}
	return err
}

// plural returns a number with its noun.
func plural(n int, one, many lang.Message) lang.Message {
	if n == 1 {
		many = one
	}
	return lang.Messagef("%d %s", "%d %s", n, many)
}

// terminalWidth is how wide the findings are printed. findingIndent is where their text
// begins.
const (
	terminalWidth = 80
	findingIndent = 28
)

// mark returns the state as the findings show it.
func (s checkState) mark() lang.Message {
	switch s {
	case stateFailed:
		return lang.Messagef("FAILED", "FALLÓ")
	case stateWarning:
		return lang.Messagef("warning", "aviso")
	default:
		return lang.Messagef("ok", "bien")
	}
}

// print writes a finding in columns: the state, the name, and the text.
func (f finding) print(w io.Writer) {
	head := fmt.Sprintf("  %-7s  %-15s  ", f.state.mark().In(languageOfWriter(w)), checkName(f.name, languageOfWriter(w)))
	for _, text := range []string{f.found.In(languageOfWriter(w)), f.action.In(languageOfWriter(w))} {
		if text == "" {
			continue
		}
		for _, part := range wrapText(printable(text), terminalWidth-findingIndent) {
			_, _ = fmt.Fprintf(w, "%-*s%s\n", findingIndent, head, part)
			head = ""
		}
		head = ""
	}
}

// wrapText splits a text into lines of at most width characters, between words. A longer
// word has a line of its own.
func wrapText(text string, width int) []string {
	var lines []string
	for _, word := range strings.Fields(text) {
		last := len(lines) - 1
		if last >= 0 && utf8.RuneCountInString(lines[last])+1+utf8.RuneCountInString(word) <= width {
			lines[last] += " " + word
		} else {
			lines = append(lines, word)
		}
	}
	return lines
}

// checkName returns the name of a check, or of a group of checks, in a language. It has
// at most 15 letters, the width of its column.
func checkName(name string, l lang.Language) string {
	for _, m := range []lang.Message{
		lang.Messagef("Files", "Archivos"),
		lang.Messagef("folders", "carpetas"),
		lang.Messagef("permissions", "permisos"),
		lang.Messagef("disk space", "disco"),
		lang.Messagef("TLS certificate", "certificado TLS"),
		lang.Messagef("Database", "Base de datos"),
		lang.Messagef("connection", "conexión"),
		lang.Messagef("settings", "ajustes"),
		lang.Messagef("role", "rol"),
		lang.Messagef("Keys", "Claves"),
		lang.Messagef("master key", "clave maestra"),
		lang.Messagef("credentials", "credenciales"),
		lang.Messagef("audit log", "auditoría"),
		lang.Messagef("Tax authority", "DGII"),
		lang.Messagef("trusted roots", "raíces"),
		lang.Messagef("reachability", "acceso"),
		lang.Messagef("Clock", "Reloj"),
		lang.Messagef("time zone", "zona horaria"),
		lang.Messagef("database", "base de datos"),
		lang.Messagef("tax authority", "DGII"),
		lang.Messagef("Taxpayers", "Contribuyentes"),
		lang.Messagef("certificates", "certificados"),
		lang.Messagef("number ranges", "rangos"),
	} {
		if m.In(lang.English) == name {
			return m.In(l)
		}
	}
	return name
}

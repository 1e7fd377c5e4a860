package main

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/fiscalhub/fiscalhub/internal/lang"
)

const (
	// redrawEvery is the shortest time between two changes of the line on a terminal.
	redrawEvery = 100 * time.Millisecond
	// quietTime is how long a command runs before it writes lines where there is no
	// terminal: a command that is done at once writes none.
	quietTime = time.Second
)

// progressBar shows how far a long command is. On a terminal it rewrites one line: how
// much is done, the rate and the time that is left. Elsewhere it writes a line after every
// tenth. It is also the writer for other messages, which appear above its line.
type progressBar struct {
	out      io.Writer
	now      func() time.Time
	terminal bool
	language lang.Language
	width    int          // of the terminal, in characters
	what     lang.Message // what the command does
	unit     lang.Message // what it counts

	began       time.Time
	drawn       time.Time
	done, total int64 // total 0: not known
	first       int64 // done at the first report, which an earlier run has achieved
	tenth       int64 // the last one that was written
	line        string
}

// startProgress begins to show the progress of a command on standard error. Other messages
// go through it until the command calls end.
func (t *terminal) startProgress(what, unit lang.Message) *progressBar {
	p := &progressBar{out: t.errOut, now: time.Now, language: t.language, what: what, unit: unit, first: -1}
	if file, ok := t.errOut.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		p.terminal, p.width = true, 80
		if columns, _, err := term.GetSize(int(file.Fd())); err == nil && columns > 0 {
			p.width = columns
		}
	}
	t.errOut = p
	return p
}

// report says that done of total are done. A total of 0 is not known.
func (p *progressBar) report(done, total int64) {
	now := p.now()
	if p.first < 0 {
		p.began, p.first = now, done
	}
	p.done, p.total = done, total
	if !p.terminal {
		if now.Sub(p.began) >= quietTime {
			p.writeTenth()
		}
		return
	}
	if complete := total > 0 && done >= total; !complete && now.Sub(p.drawn) < redrawEvery {
		return
	}
	p.drawn = now
	p.draw()
}

// about is report for one of several parts of the work, whose name is shown.
func (p *progressBar) about(what lang.Message, done, total int64) {
	if !p.what.Equal(what) {
		p.what, p.first, p.tenth, p.drawn = what, -1, 0, time.Time{}
	}
	p.report(done, total)
}

// writeTenth writes a line when another tenth is done.
func (p *progressBar) writeTenth() {
	if p.total <= 0 {
		return
	}
	tenth := min(10, p.done*10/p.total)
	if tenth <= p.tenth {
		return
	}
	p.tenth = tenth
	_, _ = fmt.Fprintf(p.out, "%s: %d %% (%s)\n", p.what.In(p.language), tenth*10, p.amount())
}

// amount returns how much is done, of how much if that is known.
func (p *progressBar) amount() string {
	of := lang.Messagef("of", "de").In(p.language)
	switch inBytes := p.countsBytes(); {
	case inBytes && p.total > 0:
		return formatBytes(p.done) + " " + of + " " + formatBytes(p.total)
	case inBytes:
		return formatBytes(p.done)
	case p.total > 0:
		return fmt.Sprintf("%d %s %d %s", p.done, of, p.total, p.unit.In(p.language))
	}
	return fmt.Sprintf("%d %s", p.done, p.unit.In(p.language))
}

// unitBytes is the unit of a progress in bytes, which are shown in larger units.
func unitBytes() lang.Message { return lang.Literal("bytes") }

func (p *progressBar) countsBytes() bool { return p.unit.Equal(unitBytes()) }

// formatBytes returns a size in the unit in which it has few digits.
func formatBytes(n int64) string {
	if n < 1<<10 {
		return strconv.FormatInt(n, 10) + " B"
	}
	value, units := float64(n)/(1<<10), []string{"KiB", "MiB", "GiB", "TiB"}
	i := 0
	for ; value >= 1000 && i < len(units)-1; i++ {
		value /= 1 << 10
	}
	return strconv.FormatFloat(value, 'f', 1, 64) + " " + units[i]
}

// draw rewrites the line on the terminal.
func (p *progressBar) draw() {
	text := p.what.In(p.language) + ": " + p.amount()
	if p.total > 0 {
		text += fmt.Sprintf(", %d %%", min(100, p.done*100/p.total))
	}
	took := p.drawn.Sub(p.began)
	if made := p.done - p.first; made > 0 && took >= time.Second {
		rate := float64(made) / took.Seconds()
		if p.countsBytes() {
			text += ", " + formatBytes(int64(rate)) + "/s"
		} else {
			text += ", " + formatRate(rate) + "/s"
		}
		if left := p.total - p.done; left > 0 {
			text += ", " + lang.Messagef("%s left", "quedan %s", formatLeft(time.Duration(float64(left)/rate*float64(time.Second)))).In(p.language)
		}
	}
	if runes := []rune(text); p.width > 0 && len(runes) >= p.width {
		text = string(runes[:p.width-1]) // a line that wraps could not be rewritten
	}
	pad := max(0, utf8.RuneCountInString(p.line)-utf8.RuneCountInString(text))
	_, _ = fmt.Fprint(p.out, "\r"+text+strings.Repeat(" ", pad))
	p.line = text
}

// Write writes a message of the command above the line.
func (p *progressBar) Write(message []byte) (int, error) {
	line := p.line
	p.clear()
	n, err := p.out.Write(message)
	if line != "" {
		p.draw()
	}
	return n, err
}

// clear removes the line from the terminal.
func (p *progressBar) clear() {
	if p.line != "" {
		_, _ = fmt.Fprint(p.out, "\r"+strings.Repeat(" ", utf8.RuneCountInString(p.line))+"\r")
		p.line = ""
	}
}

// end stops the progress. What is shown last stays on the terminal.
func (p *progressBar) end(t *terminal) {
	if p.line != "" {
		_, _ = fmt.Fprintln(p.out)
		p.line = ""
	}
	t.errOut = p.out
}

// formatRate returns a rate with two digits, or as a whole number.
func formatRate(rate float64) string {
	if rate >= 10 {
		return strconv.FormatFloat(rate, 'f', 0, 64)
	}
	return strconv.FormatFloat(rate, 'f', 1, 64)
}

// formatLeft returns a time in its two largest units.
func formatLeft(d time.Duration) string {
	d = max(d.Round(time.Second), time.Second)
	switch h, m, s := int(d.Hours()), int(d.Minutes())%60, int(d.Seconds())%60; {
	case h > 0:
		return fmt.Sprintf("%d h %d min", h, m)
	case m > 0:
		return fmt.Sprintf("%d min %d s", m, s)
	default:
		return fmt.Sprintf("%d s", s)
	}
}

// interrupted returns err, or, when a signal has ended the command, an error that says
// what was done and how to continue.
func (t *terminal) interrupted(err error, done lang.Message) error {
	if err == nil || t.ctx.Err() == nil {
		return err
	}
	return lang.Errorf("interrupted: %s", "interrumpido: %s", done)
}

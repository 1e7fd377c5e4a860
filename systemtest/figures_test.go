package systemtest

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"time"
)

// A figureTable prints the figures of several runs.
type figureTable struct {
	text  strings.Builder
	lines *tabwriter.Writer
}

func newFigureTable(columns ...any) *figureTable {
	t := &figureTable{}
	t.lines = tabwriter.NewWriter(&t.text, 0, 8, 2, ' ', tabwriter.AlignRight)
	t.row(columns...)
	return t
}

// row adds a row. A cell may be several cells.
func (t *figureTable) row(cells ...any) {
	for _, cell := range cells {
		switch cell := cell.(type) {
		case []any:
			for _, one := range cell {
				_, _ = fmt.Fprintf(t.lines, "%v\t", one) // a string cannot fail
			}
		case time.Duration:
			_, _ = fmt.Fprintf(t.lines, "%s\t", seconds(cell))
		default:
			_, _ = fmt.Fprintf(t.lines, "%v\t", cell)
		}
	}
	_, _ = fmt.Fprintln(t.lines)
}

func (t *figureTable) String() string {
	_ = t.lines.Flush()
	return t.text.String()
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

// The columns of the figures of clients and of a ledger.
var (
	clientColumns = []any{"acknowledged", "retried", "longest silence"}
	ledgerColumns = []any{"lost", "untrue status", "numbers twice", "gaps", "violations"}
)

func (c *clients) figures() []any {
	return []any{len(c.acks), c.retried, seconds(c.silence)}
}

func (l ledger) figures() []any {
	return []any{l.lost, l.untrue, l.twice, l.gaps, l.violations}
}

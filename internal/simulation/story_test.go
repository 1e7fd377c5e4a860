package simulation

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fence"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/simulator"
)

// problem records an error that no fault explains.
func (w *world) problem(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	w.tracef("world", "%s", text)
	w.record(func() { w.problems = append(w.problems, text) })
}

// anyNode returns a node that runs, or nil.
func (w *world) anyNode() *node {
	var up []*node
	for _, n := range w.nodes {
		if n.up() && !n.pausedUntil.After(w.now()) {
			up = append(up, n)
		}
	}
	if len(up) == 0 {
		return nil
	}
	return up[w.draw(len(up))]
}

// tell fills the timetable of the run.
func (w *world) tell() {
	p, start := w.plan, w.now()
	at := func(do func()) { w.at(start.Add(w.between(0, p.span)), do) }
	for _, n := range w.nodes {
		w.at(start.Add(w.between(0, time.Minute)), n.boot)
	}
	var bursts []time.Time
	for range p.bursts {
		bursts = append(bursts, start.Add(w.between(0, p.span)))
	}
	created := make([]time.Time, p.documents)
	for i := range created {
		c := w.clients[i%len(w.clients)]
		created[i] = start.Add(w.between(0, p.span))
		if len(bursts) > 0 {
			created[i] = bursts[w.draw(len(bursts))].Add(w.between(0, 100*time.Millisecond))
		}
		w.at(created[i], c.create)
		at(c.again)
		at(c.look)
		at(c.look)
		at(func() { w.feed.read(1 + w.draw(5)) })
	}
	for range p.restarts {
		at(func() {
			for i, n := range w.nodes { // one after the other, as an upgrade does
				w.after(time.Duration(i)*w.between(time.Second, time.Minute), func() {
					w.tracef(n.name, "is restarted")
					n.crash()
				})
			}
		})
	}
	for range p.pauses {
		at(func() { w.pauseNext = w.between(time.Second, 5*time.Minute) })
	}
	for range p.cuts {
		at(func() {
			n := w.nodes[w.draw(len(w.nodes))]
			d := w.between(time.Second, 20*time.Minute)
			w.tracef(n.name, "does not reach the authority for %s", d)
			w.record(func() { n.cutUntil = w.now().Add(d) })
		})
	}
	for range p.outages {
		at(func() {
			d := w.between(time.Minute, 40*time.Minute)
			if w.draw(6) == 0 && p.documents <= 6 {
				d = w.between(time.Hour, 6*time.Hour)
			}
			w.tracef("world", "the authority is out of reach for %s", d)
			for _, n := range w.nodes {
				w.record(func() { n.cutUntil = w.now().Add(d) })
			}
		})
	}
	for range p.databaseStalls {
		at(func() {
			d := w.between(time.Second, 3*time.Minute)
			w.tracef("world", "the database does not answer for %s", d)
			w.stalled = w.now().Add(d)
		})
	}
	for range p.failovers {
		switch w.draw(4) {
		case 0:
			at(w.copyDatabase)
		case 1:
			at(func() { w.copyIn = 1 })
		default: // in the middle of the work on a new document
			w.at(created[w.draw(len(created))], func() { w.copyIn = 1 + w.draw(5) })
		}
	}
	for range p.foreigns {
		at(w.otherProvider)
	}
	for range p.responses {
		at(w.respond)
	}
	for range p.lostDisks {
		at(func() {
			n := w.nodes[w.draw(len(w.nodes))]
			w.tracef(n.name, "loses its disk")
			n.emptyDisk = true
			n.crash()
		})
	}
	if p.certificateEnds {
		at(func() { w.certificate(false) })
		at(func() { w.certificate(true) })
	}
	if p.skew {
		for range 1 + w.draw(4) {
			at(func() {
				n := w.nodes[w.draw(len(w.nodes))]
				d := []time.Duration{0, w.between(-3*time.Second, 3*time.Second), w.between(-2*time.Minute, 2*time.Minute), w.between(-24*time.Hour, 24*time.Hour)}[w.draw(4)]
				w.tracef(n.name, "its clock is set %s ahead", d)
				w.record(func() { n.skew = d })
			})
		}
	}
	w.at(start.Add(p.span+time.Second), w.calm)
	w.housekeep()
}

// calm ends the faults.
func (w *world) calm() {
	w.tracef("world", "the faults are over")
	w.mu.Lock()
	w.quiet, w.stalled = true, time.Time{}
	for _, n := range w.nodes {
		n.skew, n.pausedUntil = 0, time.Time{}
	}
	w.mu.Unlock()
	w.must(w.sim.SetProfile("happy"))
	w.sim.ClearRules()
	w.certificate(true)
}

// certificate lets the certificate of the taxpayer end, or adds another one.
func (w *world) certificate(valid bool) {
	until := w.now()
	if valid {
		until = until.AddDate(1, 0, 0)
	}
	w.tracef("world", "the certificate is valid: %t", valid)
	w.record(func() { w.uncertified = !valid })
	_, err := w.rows.ExecContext(w.ctx(), `UPDATE certificates SET not_after = ?`, until.UnixMicro())
	w.must(err)
}

// housekeep lets nodes show life, operators look after the taxpayer, and the client read
// its feed, again and again. The pauses grow when nothing happens.
func (w *world) housekeep() {
	for _, n := range w.nodes {
		n.keep()
	}
	w.operate()
	if w.quiet {
		w.feed.read(50)
	}
	pause := w.between(15*time.Second, 80*time.Second)
	if w.quiet {
		pause = w.between(w.calmPause, 2*w.calmPause)
		w.calmPause = min(w.calmPause*3/2, time.Hour)
	}
	w.after(pause, w.housekeep)
}

// copyDatabase copies the database, as a standby that falls behind has it. Some minutes
// later the database fails over to the copy.
func (w *world) copyDatabase() {
	w.copyFile, w.copiedAt = w.file()+".copy", w.now()
	_ = os.Remove(w.copyFile) // of an earlier copy
	_, err := w.rows.ExecContext(w.ctx(), `VACUUM INTO ?`, w.copyFile)
	w.must(err)
	w.tracef("world", "a standby falls behind")
	w.after(w.between(0, 5*time.Minute), w.failover)
}

// failover ends every node and continues with the older copy.
func (w *world) failover() {
	if w.copyFile == "" || w.quiet {
		return
	}
	w.tracef("world", "the database fails over to the copy of %s", w.copiedAt.Format("15:04:05.000000"))
	for _, n := range w.nodes {
		n.crash()
	}
	w.must(w.rows.Close())
	w.mu.Lock()
	w.epoch++
	w.copied = append(w.copied, w.copiedAt)
	w.dirty = true
	w.mu.Unlock()
	w.must(os.Rename(w.copyFile, w.file()))
	w.copyFile = ""
	w.openRows()
	// The clients find out which of their invoices are gone, and create them again.
	for _, c := range w.clients {
		for _, key := range c.made {
			w.mu.Lock()
			c.tries++
			chain := c.tries
			c.open[key] = chain
			w.mu.Unlock()
			w.after(w.between(time.Second, 10*time.Minute), func() { c.try(key, chain) })
		}
	}
}

// seen returns the last number of each type that anybody has, as an operator finds it out.
func (w *world) seen() []fence.Stated {
	last := map[fiscal.Type]int64{}
	w.each(`SELECT ecf_type, max(last_number) FROM number_ranges GROUP BY ecf_type`, func(row *sql.Rows) error {
		var kind fiscal.Type
		var number int64
		err := row.Scan(&kind, &number)
		last[kind] = number
		return err
	})
	highest := map[fiscal.Type]int64{fiscal.FiscalCredit: 0, fiscal.Consumer: 0}
	for _, d := range w.sim.Documents(simulator.Filter{}) {
		if n, err := fiscal.ParseENCF(d.ENCF); err == nil && n.Number() <= last[n.Type()] {
			highest[n.Type()] = max(highest[n.Type()], n.Number())
		}
	}
	var all []fence.Stated
	for _, kind := range []fiscal.Type{fiscal.FiscalCredit, fiscal.Consumer} {
		all = append(all, fence.Stated{Type: kind, Number: highest[kind]})
	}
	return all
}

// operate does what an operator does: add a range when one is used up, and release ranges
// that are fenced, with the witness of every node.
func (w *world) operate() {
	var fenced, problem int
	w.must(w.rows.QueryRowContext(w.ctx(), `SELECT count(*) FROM number_ranges WHERE fenced_at IS NOT NULL`).Scan(&fenced))
	for _, kind := range []string{"31", "32"} {
		w.must(w.rows.QueryRowContext(w.ctx(), `SELECT count(*) FROM number_ranges WHERE ecf_type = ? AND next_number <= last_number`, kind).Scan(&problem))
		if problem == 0 && (w.quiet || w.draw(6) == 0) {
			w.tracef("world", "a range of type %s is added", kind)
			w.addRange(kind, max(w.plan.numbers, 5))
		}
	}
	if fenced == 0 || !w.quiet && w.draw(10) > 0 {
		return
	}
	for _, n := range w.nodes {
		if !n.up() {
			return // the operator waits for all nodes: each has a witness
		}
	}
	w.tracef("world", "an operator releases the ranges")
	w.spawn(nil, "operator", func() {
		for _, n := range w.nodes {
			if !n.up() {
				return
			}
			r := n.Releaser()
			_, err := r.Release(n.ctx, w.tp.scope)
			if errors.Is(err, fence.ErrNotStated) {
				r.Stated = w.seen()
				_, err = r.Release(n.ctx, w.tp.scope)
			}
			if err != nil {
				w.tracef(n.name, "the release fails") // the operator tries again
				return
			}
		}
	})
}

package wake

import (
	"sync"
	"time"
)

const (
	// logEvery is how often the line about a condition that lasts is logged.
	logEvery = time.Hour
	// logQuiet is how long a condition must not have been met to count as over. It is
	// longer than the pauses between attempts that meet a condition.
	logQuiet = 10 * time.Minute
	// maxConditions is how many conditions a LogLimit remembers.
	maxConditions = 1024
)

// A LogLimit decides which log lines about a condition are written: one when it begins,
// and one an hour while it lasts. Without it, each attempt of each document that waits
// for the same thing would write a line. The zero value is ready for use.
type LogLimit struct {
	mu         sync.Mutex
	conditions map[string]condition
}

// condition is when a condition was last met and last logged.
type condition struct{ met, logged time.Time }

// Allow reports whether the line about a condition is to be written now.
func (l *LogLimit) Allow(name string, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conditions == nil || len(l.conditions) >= maxConditions {
		l.conditions = make(map[string]condition)
	}
	c, known := l.conditions[name]
	log := !known || now.Before(c.met) || now.Sub(c.met) > logQuiet || now.Sub(c.logged) >= logEvery
	c.met = now
	if log {
		c.logged = now
	}
	l.conditions[name] = c
	return log
}

// End forgets a condition that is over. It reports whether there was one.
func (l *LogLimit) End(name string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, known := l.conditions[name]
	delete(l.conditions, name)
	return known
}

package console

import (
	"strconv"
	"time"
)

// duration writes a length of time with a unit that people read: 85 ms, 1.4 s, 3 min, 2.5 h.
func duration(d time.Duration) string {
	sign := ""
	if d < 0 {
		sign, d = "-", -d
	}
	switch {
	case d < time.Second:
		return sign + strconv.FormatInt(d.Milliseconds(), 10) + "\u00a0ms"
	case d < time.Minute:
		return sign + decimalOf(uint64(d/(100*time.Millisecond))) + "\u00a0s"
	case d < 2*time.Hour:
		return sign + strconv.FormatInt(int64(d/time.Minute), 10) + "\u00a0min"
	}
	return sign + decimalOf(uint64(d/(6*time.Minute))) + "\u00a0h"
}

// decimalOf writes a number of tenths, without a zero at the end.
func decimalOf(tenths uint64) string {
	text := strconv.FormatUint(tenths/10, 10)
	if rest := tenths % 10; rest != 0 {
		text += "." + strconv.FormatUint(rest, 10)
	}
	return text
}

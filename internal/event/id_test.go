package event

import (
	"strings"
	"testing"
)

func TestIDsSortByTheTimeOfTheirCreation(t *testing.T) {
	t.Parallel()
	a, b := NewID(), NewID()
	if len(a) != 36 || !strings.HasPrefix(a, "evt_") || a >= b {
		t.Errorf("%s, then %s", a, b)
	}
	if strings.Trim(a[4:], "0123456789abcdef") != "" || a[16] != '7' {
		t.Errorf("%s does not contain a UUID version 7", a)
	}
}

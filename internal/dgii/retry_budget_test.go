package dgii

import "testing"

func TestRetriesAreATenthOfAllCalls(t *testing.T) {
	t.Parallel()
	b := newRetryBudget(10)
	spent := 0
	for range 1000 {
		b.countCall()
		if b.takeRetry() {
			spent++
		}
	}
	if spent > 110 {
		t.Errorf("%d retries of 1000 calls", spent)
	}
}

package store_test

import (
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

func TestTimelineNamesADatabase(t *testing.T) {
	t.Parallel()
	eachEmpty(t, func(t *testing.T, empty func() string) {
		timeline := func(s *store.Store) string {
			name, err := s.Timeline(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return name
		}
		address := empty()
		s := storetest.Open(t, address, time.Now)
		name := timeline(s)
		if len(name) < 10 || name == store.UnknownTimeline {
			t.Errorf("the timeline is %q", name)
		}
		if again := timeline(storetest.Open(t, address, time.Now)); again != name {
			t.Errorf("opened again: %q, want %q", again, name)
		}
		if other := timeline(storetest.Open(t, empty(), time.Now)); s.Engine() == "sqlite" && other == name {
			t.Errorf("two databases have the timeline %q", name)
		}
	})
}

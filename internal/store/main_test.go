package store_test

import (
	"context"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

func TestMain(m *testing.M) {
	storetest.Main(m, func(ctx context.Context, address string) (io.Closer, error) {
		return store.Open(ctx, address, store.Options{Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	})
}

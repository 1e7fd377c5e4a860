package database_test

import (
	"context"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/database"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

func TestMain(m *testing.M) {
	storetest.Main(m, func(ctx context.Context, address string) (io.Closer, error) {
		return database.Open(ctx, address, database.TestMigrations(), database.Options{Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	})
}

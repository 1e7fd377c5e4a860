//go:build linux

package power

import (
	"bufio"
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	_ "modernc.org/sqlite" // the driver of the service
)

// writerSource is the environment variable with the address of the database that a
// writer process writes to.
const writerSource = "POWERTEST_WRITER"

// writeRows commits one row after the other, and prints the number of each after the
// commit.
func writeRows(source string) error {
	db, err := sql.Open("sqlite", source)
	if err != nil {
		return err
	}
	for n := 1; ; n++ {
		if _, err := db.Exec(`INSERT INTO rows (n) VALUES (?)`, n); err != nil { //nolint:noctx // until the power is cut
			return err
		}
		_, _ = fmt.Println(n)
	}
}

// A database that waits for the disk at each commit keeps every row after a power cut. One
// that does not loses rows: the disk drops what was not synced, and a test on it can fail.
func TestPowerCutOfASQLiteDatabase(t *testing.T) {
	t.Parallel()
	for synchronous, safe := range map[string]bool{"FULL": true, "NORMAL": false} {
		t.Run(synchronous, func(t *testing.T) {
			t.Parallel()
			d := Start(t)
			source := "file:" + filepath.Join(d.Dir, "rows.db") + "?_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_pragma=synchronous(" + synchronous + ")"
			db, err := sql.Open("sqlite", source)
			must(t, err)
			_, err = db.ExecContext(t.Context(), `CREATE TABLE rows (n INTEGER PRIMARY KEY)`)
			must(t, err, db.Close())
			d.Sync(t)

			self, err := os.Executable()
			must(t, err)
			cmd := exec.CommandContext(t.Context(), self)
			cmd.Env = append(os.Environ(), writerSource+"="+source)
			out, err := cmd.StdoutPipe()
			must(t, err)
			must(t, cmd.Start())
			lines, committed := bufio.NewScanner(out), 0
			read := func() {
				committed, err = strconv.Atoi(lines.Text())
				must(t, err)
			}
			for committed < 100 && lines.Scan() {
				read()
			}
			d.CutStrict(t)
			for lines.Scan() { // until the writer fails
				read()
			}
			if err := cmd.Wait(); err == nil {
				t.Error("the writer ended without an error")
			}
			d.Mount(t)

			db, err = sql.Open("sqlite", source)
			must(t, err)
			defer func() { _ = db.Close() }()
			var kept int
			must(t, db.QueryRowContext(t.Context(), `SELECT count(*) FROM rows WHERE n <= ?`, committed).Scan(&kept))
			if committed < 100 || (kept == committed) != safe {
				t.Errorf("%d of %d rows are left", kept, committed)
			}
		})
	}
}

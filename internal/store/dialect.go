package store

import (
	"sync"

	"github.com/fiscalhub/fiscalhub/internal/database"
)

// dialect is what statements need to know of the engine.
type dialect struct {
	*database.Dialect
	// eventKey is the condition that finds the event n of a delivery: the environment is
	// $1, the taxpayer is $2.
	eventKey string
	// gzipWriters compress large texts. It is nil when the engine does that itself.
	gzipWriters *sync.Pool
}

// eventRange finds an event with the form of a range, and with the order of the primary key.
// With equal values, PostgreSQL could read all events of the taxpayer with another index
// while it has no statistics.
const eventRange = `(n.environment, n.taxpayer_id, n.id) >= ($1, $2, event_id) AND (n.environment, n.taxpayer_id, n.id) <= ($1, $2, event_id)
			ORDER BY n.environment, n.taxpayer_id, n.id`

func newDialect(d *database.Dialect) *dialect {
	if d.Name == "postgres" {
		return &dialect{Dialect: d, eventKey: eventRange}
	}
	return &dialect{d, `n.environment = $1 AND n.taxpayer_id = $2 AND n.id = event_id`, newGzipWriters()}
}

// wrap adds the name of the operation to an error of the engine, as Dialect.Wrap does.
func (d *dialect) wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return d.Wrap("store: "+what, err)
}

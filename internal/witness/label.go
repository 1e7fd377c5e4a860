package witness

import (
	"crypto/rand"
	"errors"
	"fmt"
)

// The labels of a file: its own random name, and that of its database. They have the form
// of a record of an RNC that does not exist, with the value as its type, so that earlier
// programs can read the file.
const (
	labelWitness  = "witness"
	labelDatabase = "database"
)

func newLabel(name, value string) record { return record{verbSent, key{name, value, 0}, 1} }

// label returns the label that a record is. ok is false for another record.
func (r record) label() (name, value string, ok bool) {
	return r.rnc, r.kind, r.rnc == labelWitness || r.rnc == labelDatabase
}

// label gives a file its own name and that of its database, unless it has them.
func (f *File) label() error {
	f.readMu.Lock()
	id, database := f.labels[labelWitness], f.labels[labelDatabase]
	f.readMu.Unlock()
	var missing []record
	if database == "" {
		missing = append(missing, newLabel(labelDatabase, f.database))
	}
	if id == "" {
		missing = append(missing, newLabel(labelWitness, rand.Text()))
	}
	if len(missing) > 0 {
		if err := f.add(missing...); err != nil {
			return err
		}
		f.readMu.Lock()
		err := f.refresh()
		database = f.labels[labelDatabase]
		f.readMu.Unlock()
		if err != nil {
			return fmt.Errorf("witness: open: %w", err)
		}
	}
	if database != f.database {
		return ErrOtherDatabase
	}
	return nil
}

// Adopt opens the file of another database for this one. The numbers stay: they are those
// of an RNC, in whatever database. With inDoubt, every range is unknown until it is settled.
func Adopt(path, name, database string, inDoubt bool) (*File, error) {
	f := newFile(path, name, database)
	err := f.open()
	if err == nil {
		err = f.adopt(inDoubt)
	}
	if err == nil {
		err = f.label()
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// adopt replaces the file with one that has the numbers and no labels.
func (f *File) adopt(inDoubt bool) error {
	f.writeMu.Lock()
	defer f.writeMu.Unlock()
	if err := f.lockFile(); err != nil {
		return fmt.Errorf("witness: adopt: %w", err)
	}
	defer f.unlockFile()
	f.readMu.Lock()
	defer f.readMu.Unlock()
	if err := f.refresh(); err != nil {
		return fmt.Errorf("witness: adopt: %w", err)
	}
	f.doubtful = f.doubtful || inDoubt
	clear(f.labels)
	for o, list := range f.entries {
		if _, _, ok := (record{key: key{rnc: o.rnc}}).label(); ok {
			for first := range list {
				delete(f.durable, key{o.rnc, o.kind, first})
			}
			delete(f.entries, o)
			continue
		}
		for first, e := range list {
			list[first] = entry{number: e.number}
		}
	}
	if err := f.compact(); err != nil {
		return fmt.Errorf("witness: adopt: %w", err)
	}
	return nil
}

// ID returns the random name of the file. A new file has another one.
func (f *File) ID() string {
	f.readMu.Lock()
	defer f.readMu.Unlock()
	return f.labels[labelWitness]
}

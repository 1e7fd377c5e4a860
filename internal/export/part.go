package export

import (
	"archive/zip"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/atomicfile"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/pipeline"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

const (
	stateName = "options.json"
	partName  = "part.json"
	partSize  = 200 // documents of a part
)

// A writer collects an export in a folder. Each part is a ZIP file with some
// documents. A part that is complete is never written again.
type writer struct {
	o     Options
	dir   string
	state state
	parts int   // complete ones
	done  int64 // documents in them
	last  string
}

// state is what the parts of one export have in common.
type state struct {
	From      string    `json:"from"`
	To        string    `json:"to"`
	PDF       bool      `json:"pdf"`
	StartedAt time.Time `json:"started_at"`
	Until     string    `json:"until"` // invoices that are created later do not belong to the export
	Total     int64     `json:"total"`
	RNC       string    `json:"rnc"`
	LegalName string    `json:"legal_name"`
	Taxpayer  string    `json:"taxpayer_id"`
	Env       string    `json:"environment"`
}

func (s state) manifest() Manifest {
	return Manifest{
		Format: manifestFormat, RNC: s.RNC, LegalName: s.LegalName, TaxpayerID: s.Taxpayer, Environment: s.Env,
		From: s.From, To: s.To, PDF: s.PDF, MadeAt: s.StartedAt,
	}
}

// part is the content of part.json.
type part struct {
	Last  string     `json:"last"` // id of the last invoice
	Rows  [][]string `json:"rows"`
	Sums  []sum      `json:"sums"`
	Files []File     `json:"files"`

	archive *zip.ReadCloser
}

// begin opens the folder of an interrupted export, or makes it.
func begin(ctx context.Context, dir string, o Options) (*writer, error) {
	w := &writer{o: o, dir: dir}
	if err := atomicfile.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(filepath.Join(dir, stateName))
	if errors.Is(err, fs.ErrNotExist) {
		return w, w.start(ctx)
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &w.state); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, stateName), err)
	}
	if w.state.Taxpayer != o.Scope.TaxpayerID || w.state.Env != string(o.Scope.Environment) ||
		w.state.From != o.From.String() || w.state.To != o.To.String() || w.state.PDF != o.PDF {
		return nil, fmt.Errorf("%w: remove the folder %s to begin again", ErrOtherExport, dir)
	}
	return w, w.resume()
}

// start counts the documents and stores the options.
func (w *writer) start(ctx context.Context) error {
	taxpayer, err := w.o.Store.Taxpayer(ctx, w.o.Scope.TaxpayerID)
	if err != nil {
		return err
	}
	w.state = state{
		From: w.o.From.String(), To: w.o.To.String(), PDF: w.o.PDF, StartedAt: w.o.Now().UTC().Truncate(time.Second), Until: store.NewID(),
		RNC: taxpayer.RNC, LegalName: taxpayer.LegalName, Taxpayer: taxpayer.ID, Env: string(w.o.Scope.Environment),
	}
	if w.state.Total, err = w.o.Store.CountIssuedBetween(ctx, w.o.Scope, w.span("")); err != nil {
		return err
	}
	text, err := json.Marshal(w.state)
	if err != nil {
		return err
	}
	return atomicfile.Create(filepath.Join(w.dir, stateName), string(text))
}

func (w *writer) span(after string) store.IssueSpan {
	return store.IssueSpan{From: w.o.From, To: w.o.To, After: after, Until: w.state.Until, Limit: cmp.Or(w.o.part, partSize)}
}

// resume finds the complete parts.
func (w *writer) resume() error {
	for {
		p, err := openPart(w.partPath(w.parts))
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		w.parts, w.last, w.done = w.parts+1, p.Last, w.done+int64(len(p.Rows))
		if err := p.archive.Close(); err != nil {
			return err
		}
	}
}

func (w *writer) partPath(n int) string { return filepath.Join(w.dir, fmt.Sprintf("%06d.zip", n)) }

func openPart(path string) (*part, error) {
	archive, err := zip.OpenReader(path)
	if err != nil {
		return nil, err
	}
	p := &part{archive: archive}
	content, err := archive.Open(partName)
	if err == nil {
		err = json.NewDecoder(content).Decode(p)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), archive.Close())
	}
	return p, nil
}

// collect writes the parts that are missing.
func (w *writer) collect(ctx context.Context) error {
	for {
		w.report(0)
		invoices, err := w.o.Store.IssuedBetween(ctx, w.o.Scope, w.span(w.last))
		if err != nil || len(invoices) == 0 {
			return err
		}
		if err := w.writePart(ctx, invoices); err != nil {
			return err
		}
		w.parts, w.last, w.done = w.parts+1, invoices[len(invoices)-1].ID, w.done+int64(len(invoices))
	}
}

// report says how many documents are written: all of the complete parts, and some of
// the next one.
func (w *writer) report(more int64) {
	if w.o.Progress != nil {
		w.o.Progress(w.done+more, w.state.Total)
	}
}

// writePart writes the next part under another name and renames it when it is
// complete.
func (w *writer) writePart(ctx context.Context, invoices []store.Invoice) error {
	name := filepath.Join(w.dir, "next.zip")
	f, err := create(name)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // closed below; this one is for errors
	archive := zip.NewWriter(f)
	p := part{Last: invoices[len(invoices)-1].ID, Rows: make([][]string, 0, len(invoices))}
	sums := newSums()
	for i, inv := range invoices {
		if err := w.addDocument(ctx, archive, &p, sums, inv); err != nil {
			return err
		}
		w.report(int64(i + 1))
	}
	p.Sums = sums.list()
	text, err := json.Marshal(p)
	if err != nil {
		return err
	}
	if _, err := addFile(archive, partName, text, w.state.StartedAt); err != nil {
		return err
	}
	if err := errors.Join(archive.Close(), f.Sync(), f.Close()); err != nil {
		return err
	}
	return errors.Join(os.Rename(name, w.partPath(w.parts)), atomicfile.SyncDir(w.dir))
}

// addDocument adds the files of a document, its row and its sums.
func (w *writer) addDocument(ctx context.Context, archive *zip.Writer, p *part, sums *sums, inv store.Invoice) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	request, err := w.o.Pipeline.Requested(ctx, inv)
	if err != nil {
		return err
	}
	var names [2]string
	add := func(i int, folder, ending string, read func(context.Context, store.Invoice) (pipeline.Artifact, error)) error {
		artifact, err := read(ctx, inv)
		if errors.Is(err, pipeline.ErrNoArtifact) {
			return nil
		}
		if err != nil {
			return err
		}
		names[i] = folder + artifact.Name + ending
		file, err := addFile(archive, names[i], artifact.Bytes, w.state.StartedAt)
		p.Files = append(p.Files, file)
		return err
	}
	if err := add(0, xmlFolder, ".xml", w.o.Pipeline.XML); err != nil {
		return err
	}
	if w.o.PDF && valid(inv.Status) { // a page before the verdict is not final
		if err := add(1, pdfFolder, ".pdf", w.o.Pipeline.PDF); err != nil {
			return err
		}
	}
	p.Rows = append(p.Rows, documentRow(inv, request, names[0], names[1]))
	sums.add(inv, request)
	return nil
}

// valid reports whether the authority has accepted a document.
func valid(s fiscal.Status) bool {
	return s == fiscal.Accepted || s == fiscal.AcceptedConditional || s == fiscal.Delivered
}

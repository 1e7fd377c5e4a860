package pipeline

import (
	"context"
	"fmt"

	"github.com/fiscalhub/fiscalhub/internal/evidence"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// prepare reads what is known of the documents of claimed jobs, all at once. What
// cannot be read now is read again by the worker of the job.
func (p *Pipeline) prepare(ctx context.Context, jobs []store.Job) []Work {
	all := make([]Work, len(jobs))
	ids := make([]string, len(jobs))
	for i, job := range jobs {
		all[i].Job, ids[i] = job, job.DocumentID
	}
	states, err := p.o.Store.DocumentStates(ctx, p.o.Env, ids)
	if err != nil {
		if ctx.Err() == nil {
			p.o.Log.Warn("Cannot read the documents of claimed jobs. Each worker reads its own.", "error", err.Error())
		}
		return all
	}
	for i := range all {
		all[i].state = states[ids[i]]
	}
	return all
}

// load reads what is known of a document, unless it has been read. It returns
// store.ErrNotFound when the document does not exist.
func (p *Pipeline) load(ctx context.Context, w *Work) (err error) {
	if w.Invoice.ID != "" {
		return nil
	}
	if w.state == nil {
		states, err := p.o.Store.DocumentStates(ctx, p.o.Env, []string{w.Job.DocumentID})
		if err != nil {
			return err
		}
		if w.state = states[w.Job.DocumentID]; w.state == nil {
			return store.ErrNotFound
		}
	}
	w.Invoice, w.Request, w.Issued = w.state.Invoice, w.state.Request, w.state.Issued
	w.Evidence, err = DecodeEvidence(w.state.Evidence)
	w.state = nil
	return err
}

// DecodeEvidence decodes the stored evidence of a document.
func DecodeEvidence(stored []store.Evidence) ([]evidence.Item, error) {
	all := make([]evidence.Item, len(stored))
	for i, s := range stored {
		item, err := evidence.Decode([]byte(s.Body), s.At)
		if err != nil {
			return nil, fmt.Errorf("pipeline: evidence %s: %w", s.ID, err)
		}
		all[i] = item
	}
	return all, nil
}

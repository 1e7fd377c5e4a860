package console

import (
	"errors"
	"html/template"
	"net/http"
	"net/url"
	"time"

	liveplan "github.com/fiscalhub/fiscalhub/internal/live"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

const (
	workAddress = "/console/work"
	workShown   = 50
	// noStage is the filter for documents that no worker continues with.
	noStage = "none"
)

func (c *Console) workPages() []page {
	see := c.documentReaders()
	return []page{
		get(workAddress, see, c.showWork),
		live(workAddress+"/list", see, updates("work-list", (*request).work)),
		get(workAddress+"/{id}/requeue", operators(), on((*request).waiting, c.askRequeue)),
		post(workAddress+"/{id}/requeue", see, operators(), on((*request).waiting, c.requeue)),
	}
}

// stageTexts returns the texts of the stages: the word, and why a document waits there.
func stageTexts() map[string][2]string {
	return map[string][2]string{
		"issue":     {"work.issue", "work.why_issue"},
		"submit":    {"work.submit", "work.why_submit"},
		"poll":      {"work.poll", "work.why_poll"},
		"reconcile": {"work.reconcile", "work.why_reconcile"},
		"deliver":   {"work.deliver", "work.why_deliver"},
	}
}

// workView is the data of the page of pending work.
type workView struct {
	Form      *form
	Stages    []option
	Taxpayers []option
	Filtered  bool
	List      template.HTML
}

// workList is the part of the page that updates itself.
type workList struct {
	Rows []workRow
	Next string // the address of the next page; empty: there is none
}

// workRow is a document that waits.
type workRow struct {
	store.WorkItem
	Taxpayer  string
	StageWord string
	Why       string
	Cause     string // why the last try failed; empty: it did not
	Running   bool   // a worker has it now
	Suspended bool   // it waits until the authority answers
	Deadline  time.Time
	Late      bool // the deadline has passed
}

func (c *Console) showWork(x *request) error {
	taxpayers, _, err := x.taxpayerOptions()
	if err != nil {
		return err
	}
	list, err := x.work()
	if err != nil {
		return err
	}
	query := x.URL.Query()
	query.Del("done")
	v := workView{Form: newForm(x.URL.Query()), Taxpayers: append([]option{{"", x.text("word.all")}}, taxpayers...)}
	v.Filtered = query.Get("stage")+query.Get("taxpayer")+query.Get("age")+query.Get("deadline") != ""
	v.Stages = []option{{"", x.text("work.all_stages")}}
	for _, stage := range []string{"issue", "submit", "poll", "reconcile", "deliver"} {
		v.Stages = append(v.Stages, option{stage, x.text(stageTexts()[stage][0])})
	}
	v.Stages = append(v.Stages, option{noStage, x.text("work.no_stage")})
	if query.Get("stage") == noStage {
		// This list is read from all documents without a verdict: not every 2 seconds.
		v.List, err = x.execute("work-list", x.view("", list))
	} else {
		v.List, err = x.live(workAddress+"/list?"+query.Encode(), "work-list", list)
	}
	if err != nil {
		return err
	}
	return x.render("work", x.text("nav.work"), v)
}

// work reads the documents that wait and match the filters of the query string.
func (x *request) work() (list workList, err error) {
	q := x.URL.Query()
	f := store.WorkFilter{Stage: q.Get("stage"), TaxpayerID: q.Get("taxpayer"), After: q.Get("after"), Limit: workShown}
	if f.TaxpayerID != "" && !x.viewer.Sees(f.TaxpayerID) {
		return list, store.ErrNotFound
	}
	now := x.console.o.Now()
	if age, err := time.ParseDuration(q.Get("age")); err == nil && age > 0 {
		f.CreatedBefore = now.Add(-age)
	}
	last, err := x.console.o.Store.Contingency(x.Context(), x.console.o.Environment)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return list, err
	}
	if q.Get("deadline") != "" {
		f.Contingency = &last
	}
	var items []store.WorkItem
	var next string
	if f.Stage == noStage {
		items, err = x.abandoned(f)
	} else {
		items, next, err = x.console.o.Store.WorkList(x.Context(), x.viewer.Within(), f)
	}
	if err != nil {
		return list, err
	}
	_, names, err := x.taxpayerOptions()
	if err != nil {
		return list, err
	}
	for _, item := range items {
		list.Rows = append(list.Rows, x.workRow(item, names[item.TaxpayerID], last, now))
	}
	if next != "" {
		q.Set("after", next)
		q.Del("done")
		list.Next = workAddress + "?" + q.Encode()
	}
	return list, nil
}

// abandoned lists live documents without a verdict that no worker continues with.
func (x *request) abandoned(f store.WorkFilter) (found []store.WorkItem, err error) {
	taxpayers := x.viewer.TaxpayerIDs()
	switch {
	case f.TaxpayerID != "":
		taxpayers = []string{f.TaxpayerID}
	case x.viewer.SeesAll():
		taxpayers = []string{""}
	}
	for _, id := range taxpayers {
		waiting, err := x.console.o.Store.WaitingDocuments(x.Context(), store.Scope{Environment: x.console.o.Environment, TaxpayerID: id})
		if err != nil {
			return nil, err
		}
		for _, w := range waiting {
			if w.Job == nil && len(found) < 4*workShown && f.Selects(w) {
				found = append(found, store.WorkItem{WaitingDocument: w})
			}
		}
	}
	return found, nil
}

func (x *request) workRow(item store.WorkItem, taxpayer string, last store.Contingency, now time.Time) workRow {
	r := workRow{WorkItem: item, Taxpayer: taxpayer, Deadline: last.Deadline(item.Status, item.CreatedAt)}
	r.Late = !r.Deadline.IsZero() && now.After(r.Deadline)
	if item.Job == nil {
		r.StageWord, r.Why = x.text("work.no_stage"), x.text("work.why_none")
		return r
	}
	r.StageWord, r.Why = item.Job.Stage, x.text("work.why_other")
	if texts, ok := stageTexts()[item.Job.Stage]; ok {
		r.StageWord, r.Why = x.text(texts[0]), x.text(texts[1])
	}
	r.Running, r.Suspended = item.Job.LeaseUntil.After(now), item.Job.Suspended
	r.Cause = x.cause(item.Job.Cause)
	if item.Job.Cause.Held() {
		r.Why = x.text("work.why_held")
	}
	if r.Suspended {
		r.Why = x.text("work.why_suspended")
	}
	return r
}

// requeueView is the data of the page that puts a document back to work.
type requeueView struct {
	Form    *form
	Invoice store.Invoice
}

// waiting returns the invoice of the document that the address names.
func (x *request) waiting() (store.Invoice, error) { return x.source(x.PathValue("id")) }

func (c *Console) askRequeue(x *request, inv store.Invoice) error {
	return x.renderRequeue(http.StatusOK, newForm(url.Values{}), inv)
}

func (x *request) renderRequeue(status int, f *form, inv store.Invoice) error {
	return x.renderStatus(status, "requeue", x.text("work.requeue"), requeueView{f, inv})
}

// requeue puts a document back at the stage that its evidence asks for, as the command
// work requeue does.
func (c *Console) requeue(x *request, inv store.Invoice) error {
	f := x.sentForm()
	if f.Value("reason") == "" {
		f.fail("reason", x.text("form.required"))
		return x.renderRequeue(http.StatusUnprocessableEntity, f, inv)
	}
	_, err := c.resolver.Requeue(x.Context(), inv.Scope, inv.DocumentID, f.Value("reason"))
	if errors.Is(err, liveplan.ErrUndecidable) {
		f.fail("", x.text("work.refused", x.text("status."+string(inv.Status))))
		return x.renderRequeue(http.StatusUnprocessableEntity, f, inv)
	}
	if err != nil {
		return err
	}
	return x.done(workAddress, "work.requeued")
}

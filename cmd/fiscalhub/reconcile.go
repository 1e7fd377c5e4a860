package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/access"
	"github.com/fiscalhub/fiscalhub/internal/fence"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

type reconcileCmd struct {
	Taxpayer    string   `required:"" help:"Id of the taxpayer." placeholder:"ID"`
	Environment string   `required:"" help:"certification or production; the sandbox takes no numbers." placeholder:"E"`
	SentUpTo    []string `help:"Highest number that was sent of a range, as in E310000000120, by what you know from elsewhere; may be repeated." placeholder:"ENCF"`
	liveFlags
}

// releasedView is a released range in JSON: its numbers from–to were given up.
type releasedView struct {
	SequenceID string      `json:"sequence_id"`
	Type       fiscal.Type `json:"type"`
	From       int64       `json:"from"`
	To         int64       `json:"to"`
	Found      int64       `json:"found"`
	Absent     int64       `json:"absent"`
	Unknown    int64       `json:"unknown"`
	Next       int64       `json:"next"`
}

// progressEvery is after how many numbers people hear that it goes on.
const progressEvery = 25

// Run asks the authority about the numbers of the taxpayer's fenced ranges, gives
// them up and releases the ranges.
func (c reconcileCmd) Run(t *terminal) error {
	env := fiscal.Environment(c.Environment)
	if env != fiscal.Certification && env != fiscal.Production {
		return usageError("--environment: want certification or production; the sandbox takes no numbers")
	}
	if err := c.check(env); err != nil {
		return err
	}
	var stated []fiscal.ENCF
	for _, text := range c.SentUpTo {
		encf, err := fiscal.ParseENCF(text)
		if err != nil {
			return usageError("--sent-up-to: want a number like E310000000120")
		}
		stated = append(stated, encf)
	}
	return t.withStore(func(s *store.Store) (err error) {
		scope := store.Scope{Environment: env, TaxpayerID: c.Taxpayer}
		if _, err := s.Taxpayer(t.ctx, c.Taxpayer); err != nil {
			return missing(err, "taxpayer", c.Taxpayer)
		}
		log, keys := t.log(slog.LevelWarn), t.masterKeys()
		if _, err := t.keyring(s, keys); err != nil {
			return err
		}
		client, _, err := c.client(env, log)
		if err != nil {
			return err
		}
		defer client.Close()
		opened, err := c.fence(t, env, s, log)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, opened.Close()) }()
		releaser := fence.Releaser{
			Store: s, Authority: client, Identities: access.NewCertificates(s, keys, time.Now), Fence: opened, Now: time.Now, Stated: stated,
			Progress: func(s store.NumberRange, asked int64) {
				if asked%progressEvery == 0 {
					t.say("type %s: %d numbers answered, from %d on", s.Type, asked, s.Next)
				}
			},
		}
		released, err := releaser.Release(t.ctx, scope)
		if err != nil {
			for _, r := range released {
				t.say("type %s: released; %s", r.Range.Type, summary(r))
			}
			return err
		}
		return t.answerReleased(released)
	})
}

func (t *terminal) answerReleased(released []fence.Released) error {
	answer := struct {
		Ranges []releasedView `json:"ranges"`
	}{make([]releasedView, len(released))}
	for i, r := range released {
		answer.Ranges[i] = releasedView{r.Range.ID, r.Range.Type, r.From, r.To, r.Found, r.Absent, r.Unknown, r.To + 1}
	}
	return t.answer(answer, func(w io.Writer) {
		for _, r := range released {
			line(w, r.Range.ID, "type "+string(r.Range.Type), summary(r))
		}
		if len(released) == 0 {
			line(w, "No range of this taxpayer is fenced.")
		}
	})
}

// summary is what became of a range, for people.
func summary(r fence.Released) string {
	if r.To < r.From {
		return fmt.Sprintf("no number is given up; it goes on with %d", r.To+1)
	}
	return fmt.Sprintf("%d–%d given up: %d at the authority, %d not, %d unknown; it goes on with %d", r.From, r.To, r.Found, r.Absent, r.Unknown, r.To+1)
}

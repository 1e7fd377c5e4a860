package store

import (
	"context"
	"strconv"
	"time"
)

// How long rows are kept that no document depends on. docs/retention.md lists all
// tables.
const (
	keepDeliveryLog = 30 * 24 * time.Hour
	keepDelivered   = 30 * 24 * time.Hour
	keepInbound     = 31 * 24 * time.Hour // a month, and a day for messages that their sender signed earlier
	keepRateWindows = 2 * time.Hour

	keepRequests   = 30 * 24 * time.Hour
	keepHourCounts = 32 * 24 * time.Hour
	keepDayCounts  = 400 * 24 * time.Hour
)

// purgeBatch is how many rows one transaction of a purge deletes at most.
const purgeBatch = 500

// Purged is the number of rows that a purge deleted from each table, and of deliveries
// that it closed.
type Purged struct {
	DeliveryAttempts int
	Deliveries       int // delivered ones; the others are still needed
	Inbound          int
	Parked           int
	RateWindows      int
	UsedSeeds        int
	UserSessions     int
	UserLinks        int
	SignInFailures   int
	Closed           int // pending deliveries of deleted endpoints, which are failed now
	// More says that the purge stopped at its limit. Another call deletes more rows.
	More bool
}

// Purge deletes rows whose retention is over at now, and fails the pending deliveries
// of deleted endpoints, at most limit rows of each kind. Each transaction changes at most
// purgeBatch rows, so that other writers go on in between. After an error it returns the
// number of rows that it changed before.
func (s *Store) Purge(ctx context.Context, now time.Time, limit int) (Purged, error) {
	var p Purged
	for _, table := range []struct {
		deleted *int
		text    string // without the limit that ends it; $1: rows up to this moment
		until   time.Time
	}{
		{&p.DeliveryAttempts, `
			DELETE FROM webhook_attempts WHERE at <= $1 AND (environment, taxpayer_id, endpoint_id, id) IN (
				SELECT environment, taxpayer_id, endpoint_id, id FROM webhook_attempts WHERE at <= $1 ORDER BY at`,
			now.Add(-keepDeliveryLog)},
		{&p.Deliveries, `
			DELETE FROM webhook_deliveries WHERE state = 'delivered' AND created_at <= $1 AND (endpoint_id, event_id) IN (
				SELECT endpoint_id, event_id FROM webhook_deliveries WHERE state = 'delivered' AND created_at <= $1 ORDER BY created_at`,
			now.Add(-keepDelivered)},
		{&p.Inbound, `
			DELETE FROM inbound WHERE at <= $1 AND (source_id, message_id) IN (
				SELECT source_id, message_id FROM inbound WHERE at <= $1 ORDER BY at`,
			now.Add(-keepInbound)},
		{&p.Parked, `
			DELETE FROM parked WHERE expires_at <= $1 AND (environment, taxpayer_id, id) IN (
				SELECT environment, taxpayer_id, id FROM parked WHERE expires_at <= $1 ORDER BY expires_at`,
			now},
		{&p.RateWindows, `
			DELETE FROM rate_windows WHERE window_end <= $1 AND bucket IN (
				SELECT bucket FROM rate_windows WHERE window_end <= $1 ORDER BY window_end`,
			now.Add(-keepRateWindows)},
		{&p.UsedSeeds, `
			DELETE FROM used_seeds WHERE expires_at <= $1 AND digest IN (
				SELECT digest FROM used_seeds WHERE expires_at <= $1 ORDER BY expires_at`,
			now},
		{&p.UserSessions, `
			DELETE FROM user_sessions WHERE expires_at <= $1 AND id IN (
				SELECT id FROM user_sessions WHERE expires_at <= $1 ORDER BY expires_at`,
			now},
		{&p.UserLinks, `
			DELETE FROM user_links WHERE expires_at <= $1 AND user_id IN (
				SELECT user_id FROM user_links WHERE expires_at <= $1 ORDER BY expires_at`,
			now},
		{&p.SignInFailures, `
			DELETE FROM sign_in_failures WHERE expires_at <= $1 AND bucket IN (
				SELECT bucket FROM sign_in_failures WHERE expires_at <= $1 ORDER BY expires_at`,
			now},
	} {
		more, err := s.purge(ctx, table.text, micros(table.until), limit, table.deleted)
		if err != nil {
			return p, err
		}
		p.More = p.More || more
	}
	more, err := s.closeDeleted(ctx, limit, &p.Closed)
	p.More = p.More || more
	return p, err
}

// PurgeConsole deletes logged requests and counts whose retention is over at now, at most
// limit rows of each kind, in transactions as Purge does. It returns how many rows
// it deleted.
func (s *Store) PurgeConsole(ctx context.Context, now time.Time, limit int) (deleted int, err error) {
	for _, table := range []struct {
		text string
		arg  any
	}{
		{`
			DELETE FROM request_log WHERE id < $1 AND (environment, taxpayer_id, id) IN (
				SELECT environment, taxpayer_id, id FROM request_log WHERE id < $1 ORDER BY id`, FirstIDAt(now.Add(-keepRequests))},
		{`
			DELETE FROM document_counts WHERE span = 'hour' AND start_at <= $1 AND (environment, taxpayer_id, span, start_at, status) IN (
				SELECT environment, taxpayer_id, span, start_at, status FROM document_counts WHERE span = 'hour' AND start_at <= $1 ORDER BY start_at`,
			micros(now.Add(-keepHourCounts))},
		{`
			DELETE FROM document_counts WHERE span = 'day' AND start_at <= $1 AND (environment, taxpayer_id, span, start_at, status) IN (
				SELECT environment, taxpayer_id, span, start_at, status FROM document_counts WHERE span = 'day' AND start_at <= $1 ORDER BY start_at`,
			micros(now.Add(-keepDayCounts))},
		{`
			DELETE FROM verdict_times WHERE span = 'hour' AND start_at <= $1 AND (environment, taxpayer_id, span, start_at, bucket) IN (
				SELECT environment, taxpayer_id, span, start_at, bucket FROM verdict_times WHERE span = 'hour' AND start_at <= $1 ORDER BY start_at`,
			micros(now.Add(-keepHourCounts))},
		{`
			DELETE FROM verdict_times WHERE span = 'day' AND start_at <= $1 AND (environment, taxpayer_id, span, start_at, bucket) IN (
				SELECT environment, taxpayer_id, span, start_at, bucket FROM verdict_times WHERE span = 'day' AND start_at <= $1 ORDER BY start_at`,
			micros(now.Add(-keepDayCounts))},
	} {
		var n int
		_, err := s.purge(ctx, table.text, table.arg, limit, &n)
		deleted += n
		if err != nil {
			return deleted, err
		}
	}
	return deleted, nil
}

// purge runs a DELETE in batches until it has deleted limit rows, or all rows. more
// reports that it stopped at the limit.
func (s *Store) purge(ctx context.Context, text string, until any, limit int, deleted *int) (more bool, err error) {
	for *deleted < limit {
		batch := min(purgeBatch, limit-*deleted)
		n, err := s.run(ctx, "purge", do(text+` LIMIT `+strconv.Itoa(batch)+`)`, until))
		if err != nil {
			return false, err
		}
		*deleted += int(n)
		if n < int64(batch) {
			return false, nil
		}
	}
	return true, nil
}

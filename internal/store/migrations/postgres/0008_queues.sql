-- The queue of a job says which workers do its stage. Workers that deliver to
-- buyers wait for servers of others, so they have a queue of their own.
-- A claim reads the front of jobs_due. When the whole front belongs to taxpayers
-- that have their share of the workers, it steps from taxpayer to taxpayer in
-- jobs_of_taxpayer. Neither reads the backlog. The index that most statements need
-- is created last: the server prefers it while the table is empty.

ALTER TABLE jobs ADD COLUMN queue TEXT COLLATE "C" NOT NULL
	GENERATED ALWAYS AS (CASE stage WHEN 'deliver' THEN 'deliver' ELSE 'main' END) STORED;
DROP INDEX jobs_due;
CREATE INDEX jobs_of_taxpayer ON jobs (environment, queue, taxpayer_id, run_at, document_id);
CREATE INDEX jobs_due ON jobs (environment, queue, run_at, document_id);

-- An environment has at most one contingency that has not ended.

UPDATE contingencies SET ended_at = started_at
WHERE ended_at IS NULL AND EXISTS (
	SELECT 1 FROM contingencies later
	WHERE later.environment = contingencies.environment AND later.ended_at IS NULL AND later.started_at > contingencies.started_at);
CREATE UNIQUE INDEX contingencies_active ON contingencies (environment) WHERE ended_at IS NULL;

-- The purge deletes the oldest rows of these tables.

CREATE INDEX delivery_attempts_by_time ON delivery_attempts (at);
CREATE INDEX deliveries_delivered ON deliveries (created_at) WHERE state = 'delivered';
CREATE INDEX inbound_by_time ON inbound (at);
CREATE INDEX rate_windows_by_end ON rate_windows (window_end);

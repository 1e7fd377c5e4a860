-- A number is used once somebody can see it. A node of which the last commits were lost
-- reports the highest number that its witness knows with the range, and with its heartbeat
-- on which timeline it has done so: a release needs the reports of all nodes.

ALTER TABLE sequences ADD COLUMN seen_number BIGINT NOT NULL DEFAULT 0;
ALTER TABLE nodes ADD COLUMN witness TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE nodes ADD COLUMN timeline TEXT COLLATE "C" NOT NULL DEFAULT '';

-- The number of a document that is to be sent. Documents of a type are sent in the order of
-- their numbers. NULL: the document does not take part in that order.

ALTER TABLE jobs ADD COLUMN turn TEXT COLLATE "C";
UPDATE jobs SET turn = (SELECT encf FROM issued WHERE issued.document_id = jobs.document_id) WHERE stage = 'submit';
CREATE INDEX jobs_by_turn ON jobs (environment, taxpayer_id, turn) WHERE stage = 'submit';

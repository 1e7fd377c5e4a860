-- The timeline on which the database of an environment is known to be complete: at first
-- that of this migration, then that on which the nodes have worked last. A copy of the
-- database that continues another timeline may have lost numbers that were sent.
CREATE TABLE timelines (
	environment TEXT COLLATE "C" NOT NULL PRIMARY KEY,
	timeline    TEXT COLLATE "C" NOT NULL
);

-- Some hosted servers do not let the role read the timeline, and refuse it in several ways.
DO $$
BEGIN
	INSERT INTO timelines (environment, timeline)
		SELECT environment, system_identifier::text || '-' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8)
		FROM pg_control_system(), unnest(ARRAY['certification', 'production']) AS environment;
EXCEPTION WHEN insufficient_privilege OR undefined_function OR feature_not_supported OR object_not_in_prerequisite_state THEN
END
$$;

-- Until when an endpoint missed events: the moment when it was enabled again. The missed
-- events are those without a delivery, and delivered deliveries are deleted after a
-- month, so the search for missed events must end there. NULL: it is still disabled, or
-- an earlier release has enabled it.
ALTER TABLE endpoints ADD COLUMN missed_until INTEGER;

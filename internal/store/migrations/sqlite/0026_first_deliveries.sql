-- The pending deliveries without an attempt. They are due at once, so one that is due
-- later was stored by a clock that was ahead. The index finds it among the deliveries that
-- wait for another attempt.
CREATE INDEX deliveries_first ON deliveries (endpoint_id, run_at, sequence, notice_id) WHERE state = 'pending' AND attempt = 0;

-- The W3C trace context (traceparent) of the request that created the invoice, so that the
-- stages of its document belong to the same trace, also after a restart and on other nodes.
-- NULL: the request had none, and traces are not exported.
ALTER TABLE invoices ADD COLUMN trace TEXT;

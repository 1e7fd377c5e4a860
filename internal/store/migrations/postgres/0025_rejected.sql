-- The walks of the comparison read rejected documents, too: the authority may have
-- accepted one.
CREATE INDEX invoices_rejected ON invoices (environment, updated_at, document_id)
	WHERE encf IS NOT NULL AND status = 'rejected';

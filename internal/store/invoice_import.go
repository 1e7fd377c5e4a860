package store

import "context"

// ImportInvoices stores invoices in one transaction, without an answer, a history or a
// job. Only tests and benchmarks use it, to fill a database quickly. It is here because
// no other package contains SQL.
func (s *Store) ImportInvoices(ctx context.Context, invoices []Invoice, request []byte) error {
	return s.ImportRequests(ctx, invoices, func(int) []byte { return request })
}

// ImportRequests is ImportInvoices for invoices with different requests.
func (s *Store) ImportRequests(ctx context.Context, invoices []Invoice, request func(i int) []byte) error {
	return s.Update(ctx, func(tx *Tx) error {
		for i, inv := range invoices {
			one, err := s.d.createInvoice(inv, request(i))
			if err != nil {
				return err
			}
			if _, err := one.run(ctx, tx.q); err != nil {
				return tx.d.wrap("import invoices", err)
			}
		}
		return nil
	})
}

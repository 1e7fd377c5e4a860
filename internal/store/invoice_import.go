package store

import "context"

// ImportInvoices stores invoices in one transaction, without an answer, a history or a
// job. Only tests and benchmarks use it, to fill a database quickly. It is here because
// no other package contains SQL.
func (s *Store) ImportInvoices(ctx context.Context, invoices []Invoice, request []byte) error {
	return s.ImportRequests(ctx, invoices, func(int) []byte { return request })
}

// ImportRequests is ImportInvoices for invoices with different requests. An invoice whose
// external id is taken is left out.
func (s *Store) ImportRequests(ctx context.Context, invoices []Invoice, request func(i int) []byte) error {
	columns, values := 0, []any(nil)
	for i, inv := range invoices {
		one, err := s.d.createInvoice(inv, request(i))
		if err != nil {
			return err
		}
		columns, values = len(one.Args), append(values, one.Args...)
	}
	return s.Update(ctx, func(tx *Tx) error {
		return inChunks(values, columns, func(some []any, list string) error {
			return tx.exec(ctx, "import invoices", createInvoicesText(list), some...)
		})
	})
}

// Repeat the request with the same key when the connection breaks.
const headers = { "Idempotency-Key": "fa-2026-0418-create" };
const created = await call("POST", `${taxpayer}/invoices`, headers, {
  external_id: "FA-2026-0418",
  ecf_type: "31",
  issue_date: "2026-04-10",
  currency: "DOP",
  payment_type: "cash",
  buyer: { legal_name: "Ferretería El Tornillo Azul, SRL", tax_id: "199000021" },
  lines: [{
    line_id: "1", description: "Taladro percutor 600 W", item_kind: "product",
    quantity: "3", unit_price: "1250.00", discount: null,
    taxes: [{ code: "ITBIS", label: "ITBIS 18%", rate_percent: "18" }],
  }],
  declared_totals: {
    subtotal: "3750.00", discount_total: "0.00", tax_total: "675.00", total: "4425.00",
  },
});
const invoice = (await created.json()).data;
console.log(invoice.id, invoice.status);

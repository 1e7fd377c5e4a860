// Creates COUNT invoices through a proxy that cuts connections, 16 at a time. Prints what the
// service acknowledged as JSON. systemtest/typescript_client_test.go runs it.
import { Client } from "../dist/index.js";

const count = Number(process.env.COUNT);
const client = new Client({
  baseUrl: process.env.FISCALHUB_URL,
  apiKey: process.env.FISCALHUB_KEY,
  taxpayerId: process.env.FISCALHUB_TAXPAYER,
  attempts: 40,
  attemptTimeoutMs: 20_000,
});
const acknowledged = {};
let replayed = 0;
let next = 0;

async function work() {
  while (next < count) {
    const sale = `sale-${next++}`;
    const { data, meta } = await client.createInvoice(
      {
        external_id: sale,
        ecf_type: "32",
        issue_date: "2026-11-14",
        currency: "DOP",
        payment_type: "cash",
        buyer: { legal_name: "Consumidor final" },
        lines: [
          {
            line_id: "1",
            description: "Café molido 1 lb",
            item_kind: "product",
            quantity: "2",
            unit_price: "100.00",
            discount: null,
            taxes: [{ code: "ITBIS", label: "ITBIS 18%", rate_percent: "18" }],
          },
        ],
        declared_totals: { subtotal: "200.00", discount_total: "0.00", tax_total: "36.00", total: "236.00" },
      },
      { onKey: () => {} },
    );
    acknowledged[data.external_id] = data.id;
    if (meta.replayed) replayed++;
  }
}

await Promise.all(Array.from({ length: 16 }, work));
console.log(JSON.stringify({ acknowledged, replayed }));

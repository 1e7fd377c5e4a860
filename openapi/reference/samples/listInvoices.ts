let cursor = "";
do {
  const query = `status=accepted&limit=50${cursor && `&cursor=${cursor}`}`;
  const page = await (await call("GET", `${taxpayer}/invoices?${query}`)).json();
  for (const invoice of page.data) console.log(invoice.external_id, invoice.status);
  cursor = page.meta.next_cursor ?? "";
} while (cursor);

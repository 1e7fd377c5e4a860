# With Prefer the service answers when the verdict is known, after 20 seconds at the latest.
curl -sS --fail-with-body \
  "$FISCALHUB_URL/v1/taxpayers/$FISCALHUB_TAXPAYER/invoices/$INVOICE_ID" \
  -H "Authorization: Bearer $FISCALHUB_KEY" \
  -H 'Prefer: wait=20'

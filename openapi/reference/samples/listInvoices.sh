# Newest first. Pass meta.next_cursor as cursor to read the next page.
curl -sS --fail-with-body \
  "$FISCALHUB_URL/v1/taxpayers/$FISCALHUB_TAXPAYER/invoices?status=accepted&limit=50" \
  -H "Authorization: Bearer $FISCALHUB_KEY"

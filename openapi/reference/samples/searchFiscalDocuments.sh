curl -sS --fail-with-body \
  "$FISCALHUB_URL/v1/taxpayers/$FISCALHUB_TAXPAYER/fiscal-documents?external_id=FA-2026-0418" \
  -H "Authorization: Bearer $FISCALHUB_KEY"

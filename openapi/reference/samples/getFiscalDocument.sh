curl -sS --fail-with-body \
  "$FISCALHUB_URL/v1/taxpayers/$FISCALHUB_TAXPAYER/fiscal-documents/$DOCUMENT_ID" \
  -H "Authorization: Bearer $FISCALHUB_KEY"

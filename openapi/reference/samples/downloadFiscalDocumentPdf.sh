curl -sS --fail-with-body \
  "$FISCALHUB_URL/v1/taxpayers/$FISCALHUB_TAXPAYER/fiscal-documents/$DOCUMENT_ID/pdf?format=receipt" \
  -H "Authorization: Bearer $FISCALHUB_KEY" \
  -o page.pdf

curl -sS --fail-with-body \
  "$FISCALHUB_URL/v1/taxpayers/$FISCALHUB_TAXPAYER/fiscal-documents/$DOCUMENT_ID/xml" \
  -H "Authorization: Bearer $FISCALHUB_KEY" \
  -o signed.xml

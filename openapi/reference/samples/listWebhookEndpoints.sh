curl -sS --fail-with-body \
  "$FISCALHUB_URL/v1/taxpayers/$FISCALHUB_TAXPAYER/webhook-endpoints" \
  -H "Authorization: Bearer $FISCALHUB_KEY"

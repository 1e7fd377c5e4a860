curl -sS --fail-with-body -X POST \
  "$FISCALHUB_URL/v1/taxpayers/$FISCALHUB_TAXPAYER/webhook-endpoints/$ENDPOINT_ID/rotate-secret" \
  -H "Authorization: Bearer $FISCALHUB_KEY"

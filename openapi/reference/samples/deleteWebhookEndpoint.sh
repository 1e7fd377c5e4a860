curl -sS --fail-with-body -X DELETE \
  "$FISCALHUB_URL/v1/taxpayers/$FISCALHUB_TAXPAYER/webhook-endpoints/$ENDPOINT_ID" \
  -H "Authorization: Bearer $FISCALHUB_KEY"

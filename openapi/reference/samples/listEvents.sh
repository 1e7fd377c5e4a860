# Store meta.next_cursor with what you have processed, and pass it as cursor the next time.
# With wait=30 the service answers as soon as there is an event.
curl -sS --fail-with-body \
  "$FISCALHUB_URL/v1/taxpayers/$FISCALHUB_TAXPAYER/events?limit=100" \
  -H "Authorization: Bearer $FISCALHUB_KEY"

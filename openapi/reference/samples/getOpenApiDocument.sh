curl -sS --fail-with-body \
  "$FISCALHUB_URL/v1/openapi.json" -o openapi.json

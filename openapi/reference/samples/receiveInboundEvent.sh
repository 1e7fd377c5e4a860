ID=msg_2mXqPzT0
TIME=$(date +%s)
BODY='{"type":"ecf.commercial_response","data":{"encf":"E310000000157","xml_base64":"'$(base64 -w0 response.xml)'"}}'
SECRET=$(printf %s "${SOURCE_SECRET#whsec_}" | base64 -d | od -An -v -tx1 | tr -d ' \n')
SIGNATURE=$(printf %s "$ID.$TIME.$BODY" | openssl dgst -sha256 -mac HMAC -macopt "hexkey:$SECRET" -binary | base64)

curl -sS --fail-with-body \
  "$FISCALHUB_URL/v1/events/inbound/$SOURCE_ID" \
  -H "webhook-id: $ID" \
  -H "webhook-timestamp: $TIME" \
  -H "webhook-signature: v1,$SIGNATURE" \
  -H 'Content-Type: application/json' \
  -d "$BODY"

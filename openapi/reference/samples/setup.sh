# fiscalhub serve prints these values.
export FISCALHUB_URL=http://127.0.0.1:8080
export FISCALHUB_TAXPAYER=TAXPAYER_ID
export FISCALHUB_KEY=API_KEY

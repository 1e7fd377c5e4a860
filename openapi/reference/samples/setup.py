import json, os, urllib.error, urllib.request

ROOT = os.environ["FISCALHUB_URL"]
TAXPAYER = "/v1/taxpayers/" + os.environ["FISCALHUB_TAXPAYER"]


def call(method, path, headers={}, body=None):
    request = urllib.request.Request(ROOT + path, method=method, headers={
        "Authorization": "Bearer " + os.environ["FISCALHUB_KEY"],
        "Content-Type": "application/json", **headers})
    if method == "POST":
        request.data = json.dumps(body or {}).encode()
    try:
        return urllib.request.urlopen(request, timeout=60)
    except urllib.error.HTTPError as answer:
        error = json.load(answer)["error"]
        raise SystemExit("{code}: {message} ({request_id})".format(**error))

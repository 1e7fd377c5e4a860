"""A client of the fiscalhub API, version 1, in one file. Copy it into your program.

It needs Python 3.9 or later and no other package.

    client = Client("https://invoices.example.com", api_key, taxpayer_id, language="es")
    prepared = client.prepare_invoice(request)      # makes the idempotency key
    save(prepared.key, prepared.body)               # before the first request
    created = client.send_invoice(prepared)         # may be repeated at any time
    decided = client.wait_for_outcome(created.data["id"], timeout=60)

A request is sent again only where that is safe: when no answer arrived, after a 429 and after
a 503. A repeated request has the same bytes and the same key, and waits at least as long as
Retry-After says. All times are in seconds.
"""

import base64
import binascii
import hashlib
import hmac
import http.client
import json
import math
import random
import re
import secrets
import ssl
import time
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass, field

DECIDED = frozenset(["accepted", "accepted_conditional", "rejected", "delivered", "validation_failed"])
"""The statuses that are an outcome. outcome_unknown is none: the service finds out."""

MAX_REQUEST = 1 << 20  # bytes; the limit of the API
MAX_ANSWER = 64 << 20
MAX_RETRY_AFTER = 120  # a service that asks for more will not be back in time
FIRST_WAIT, LAST_WAIT = 0.2, 10
OUTCOME_WAIT, EVENT_WAIT = 20, 30  # the longest waits that the service allows


class ApiError(Exception):
    """An answer that is not a success. Decide by its code, show its message to people."""

    def __init__(self, status, headers, body):
        try:
            error = json.loads(body)["error"]
            if not isinstance(error, dict):
                error = {}
        except (ValueError, LookupError, TypeError):
            error = {}  # the answer of a proxy; its status is the message
        self.status = status
        self.code = error.get("code", "")
        self.details = error.get("details", [])
        self.request_id = error.get("request_id") or headers.get("X-Request-Id", "")
        self.location = headers.get("Location")
        seconds = headers.get("Retry-After", "")
        self.retry_after = int(seconds) if re.fullmatch("[0-9]{1,9}", seconds) else None
        text = f"answer {status} {self.code}: {error.get('message', 'no message')}"
        if self.details:
            first = self.details[0]
            text += f" ({first['field']}: {first['message']}; {len(self.details)} in all)"
        super().__init__(f"{text} [{self.request_id}]")


class ConnectionLost(Exception):
    """No complete answer arrived. The service may have received the request: send a creation
    again with the same key and the same body."""

    def __init__(self, request_id, cause):
        super().__init__(f"no answer [{request_id}]: {cause}")
        self.request_id = request_id


class DeadlineExceeded(Exception):
    """The time of the caller has ended. The service may have received the request."""

    def __init__(self, message, invoice=None):
        super().__init__(message)
        self.invoice = invoice  # as it was last seen, from wait_for_outcome


class WebhookRefused(Exception):
    """A webhook message that must be answered with 401. Its reason is "headers", "signature"
    or "time"; do not give the reason to the sender."""

    def __init__(self, reason):
        super().__init__(f"the webhook message is refused: {reason}")
        self.reason = reason


@dataclass(frozen=True)
class Prepared:
    """A creation that can be sent again at any time, and has its effect once."""

    key: str
    body: bytes


@dataclass
class Answer:
    """The data of an answer, and what identifies the request."""

    data: object
    request_id: str = ""
    replayed: bool = False  # the answer is that of an earlier request with the same key and body
    next_cursor: str = ""
    has_more: bool = False
    meta: dict = field(default_factory=dict)


def new_key():
    """Returns a random idempotency key. Store it before you use it."""
    return "key_" + secrets.token_hex(16)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    # The API has no redirects, and the credential must not reach another host.
    def redirect_request(self, *_):
        return None


class Client:
    """Sends requests for one taxpayer with one credential. Threads may share it."""

    def __init__(self, base_url, api_key, taxpayer_id, language=None, attempts=5, attempt_timeout=60):
        parts = urllib.parse.urlsplit(base_url)
        if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc or parts.query or parts.fragment:
            raise ValueError("base_url must be http or https, without user, query and fragment")
        if not re.fullmatch("[!-~]+", api_key):
            raise ValueError("api_key is empty or has invalid characters")
        if attempts < 1:
            raise ValueError("attempts must be 1 or more")
        self._base = base_url.rstrip("/") + "/v1/taxpayers/" + _uuid(taxpayer_id)
        self._headers = {"Authorization": "Bearer " + api_key}
        if language:
            self._headers["Accept-Language"] = language
        self._attempts = attempts
        self._attempt_timeout = attempt_timeout
        self._opener = urllib.request.build_opener(_NoRedirect)

    # Invoices

    def prepare_invoice(self, request, key=None):
        """Makes the key and the bytes of a creation, and sends nothing. Store both, then call
        send_invoice."""
        return Prepared(key or new_key(), json.dumps(request, ensure_ascii=False).encode())

    def send_invoice(self, prepared, wait=None, scenario=None, timeout=None):
        """Registers a prepared invoice. After any failure, also after a crash, call it again
        with the same values: there is no second invoice. scenario is for the sandbox."""
        return self._create("/invoices", 202, prepared, timeout, wait, scenario)

    def create_invoice(self, request, key=None, on_key=None, **options):
        """prepare_invoice and send_invoice in one call. Pass the key that you have stored, or
        on_key, a function that stores the prepared request before it is sent."""
        return self.send_invoice(_prepare(request, key, on_key), **options)

    def get_invoice(self, invoice_id, wait=None, timeout=None):
        return self._fetch("GET", "/invoices/" + _uuid(invoice_id), 200, timeout, wait=wait)

    def wait_for_outcome(self, invoice_id, timeout=None):
        """Waits until the status of an invoice is in DECIDED. Give a timeout: an authority that
        is out of reach may decide only days later. Raises DeadlineExceeded with the invoice as
        it was last seen."""
        ends = _end(timeout)
        pause, last = FIRST_WAIT, None
        while True:
            left = ends - time.monotonic()
            try:
                wait = max(0, min(OUTCOME_WAIT, self._attempt_timeout / 2, left))
                answer = self.get_invoice(invoice_id, wait=wait, timeout=None if ends == math.inf else left)
                if answer.data["status"] in DECIDED:
                    return answer
                last = answer.data
                _sleep(pause, ends, None)  # the service does not wait while it stops or is busy
            except DeadlineExceeded as end:
                status = last["status"] if last else "not read"
                raise DeadlineExceeded(f"invoice {invoice_id} is {status}: {end}", last) from end
            pause = min(2 * pause, 5)

    def list_invoices(self, external_id=None, status=None, cursor=None, limit=None, timeout=None):
        """Reads one page of invoices, newest first."""
        query = {"external_id": external_id, "status": status, "cursor": cursor, "limit": limit}
        return self._fetch("GET", "/invoices", 200, timeout, query=query)

    def all_invoices(self, **options):
        """Yields the invoices of every page of a list. timeout is for each page."""
        return _pages(self.list_invoices, options)

    # Fiscal documents

    def find_document(self, external_id, timeout=None):
        """Returns the fiscal document of the invoice with an external id; data is None without one."""
        answer = self._fetch("GET", "/fiscal-documents", 200, timeout, query={"external_id": external_id})
        answer.data = answer.data[0] if answer.data else None
        return answer

    def get_document(self, document_id, timeout=None):
        return self._fetch("GET", "/fiscal-documents/" + _uuid(document_id), 200, timeout)

    def document_xml(self, document_id, timeout=None):
        """Downloads the signed XML. It fails with artifact_not_ready while there is none."""
        return self._send("GET", "/fiscal-documents/" + _uuid(document_id) + "/xml", 200, timeout)[1]

    def document_pdf(self, document_id, format=None, timeout=None):
        """Downloads the printed page. format is letter, receipt or receipt58."""
        return self._send("GET", "/fiscal-documents/" + _uuid(document_id) + "/pdf", 200, timeout, query={"format": format})[1]

    # Events

    def list_events(self, cursor=None, limit=None, wait=None, timeout=None):
        """Reads one page of the feed, oldest first. Use next_cursor for the next page, also
        when the page is empty."""
        query = {"cursor": cursor, "limit": limit, "wait": None if wait is None else math.ceil(wait)}
        return self._fetch("GET", "/events", 200, timeout, query=query)

    def all_events(self, **options):
        """Yields the events from a cursor up to the end of the feed, and ends there."""
        while True:
            page = self.list_events(**options)
            yield from page.data
            if not page.has_more:
                return
            options["cursor"] = page.next_cursor

    def follow_events(self, **options):
        """Yields pages of events and waits for new ones. Store next_cursor together with the
        result of each page, so that a later call can continue there."""
        options.setdefault("wait", min(EVENT_WAIT, self._attempt_timeout / 2))
        while True:
            page = self.list_events(**options)
            options["cursor"] = page.next_cursor
            if page.data:
                yield page
            else:
                time.sleep(FIRST_WAIT)  # a service that stops answers without waiting

    # Webhook endpoints

    def create_webhook_endpoint(self, url, events=("*",), description=None, key=None, on_key=None, timeout=None):
        """Adds an address that receives events. The answer has the secret that signs them."""
        request = {"url": url, "events": list(events)}
        if description:
            request["description"] = description
        return self._create("/webhook-endpoints", 201, _prepare(request, key, on_key), timeout)

    def list_webhook_endpoints(self, cursor=None, limit=None, timeout=None):
        return self._fetch("GET", "/webhook-endpoints", 200, timeout, query={"cursor": cursor, "limit": limit})

    def all_webhook_endpoints(self, **options):
        return _pages(self.list_webhook_endpoints, options)

    def delete_webhook_endpoint(self, endpoint_id, timeout=None):
        self._send("DELETE", "/webhook-endpoints/" + _uuid(endpoint_id), 204, timeout)

    def rotate_webhook_secret(self, endpoint_id, timeout=None):
        """Gives an endpoint a new secret. It is not sent again after a lost answer: that would
        rotate again."""
        return self._fetch("POST", "/webhook-endpoints/" + _uuid(endpoint_id) + "/rotate-secret", 200, timeout, once=True)

    # The exchange

    def _create(self, path, status, prepared, timeout, wait=None, scenario=None):
        if not re.fullmatch("[!-~]([ -~]{0,198}[!-~])?", prepared.key):
            raise ValueError("the idempotency key must be 1 to 200 printable ASCII characters")
        if len(prepared.body) > MAX_REQUEST:
            raise ValueError(f"the request has {len(prepared.body)} bytes, more than 1 MiB")
        return self._fetch("POST", path, status, timeout, body=prepared.body, key=prepared.key, wait=wait, scenario=scenario)

    def _fetch(self, method, path, status, timeout, **rest):
        headers, body = self._send(method, path, status, timeout, **rest)
        envelope = json.loads(body)
        meta = envelope["meta"]
        return Answer(
            envelope["data"],
            request_id=headers.get("X-Request-Id", ""),
            replayed=headers.get("Idempotency-Replayed") == "true",
            next_cursor=meta.get("next_cursor") or "",
            has_more=meta.get("has_more", False),
            meta=meta,
        )

    def _send(self, method, path, status, timeout, query=None, body=None, key=None, wait=None, scenario=None, once=False):
        """Sends a request until it succeeds or fails for good, no attempt is left, or the time
        ends. Returns the headers and the body of the answer."""
        url = self._base + path
        query = {name: value for name, value in (query or {}).items() if value not in (None, "")}
        if query:
            url += "?" + urllib.parse.urlencode(query)
        headers = dict(self._headers)
        if body is not None:
            headers["Content-Type"] = "application/json"
        if key:
            headers["Idempotency-Key"] = key
        if wait is not None:
            headers["Prefer"] = f"wait={math.ceil(wait)}"
        if scenario:
            headers["Sandbox-Scenario"] = scenario
        ends = _end(timeout)
        attempt = 1
        while True:
            try:
                return self._try(method, url, status, headers, body, ends)
            except (ApiError, ConnectionLost) as error:
                again = isinstance(error, ApiError) and error.status == 429 if once else _temporary(error)
                if not again or attempt >= self._attempts:
                    raise
                _sleep(_wait_before(error, attempt), ends, error)
            attempt += 1

    def _try(self, method, url, status, headers, body, ends):
        request_id = "req_" + secrets.token_hex(16)
        left = ends - time.monotonic()
        if left <= 0:
            raise DeadlineExceeded(f"the time ended before an answer [{request_id}]")
        request = urllib.request.Request(url, data=body, method=method, headers={**headers, "X-Request-Id": request_id})
        try:
            with self._opener.open(request, timeout=min(left, self._attempt_timeout)) as answer:
                got, content = answer.status, _read(answer, MAX_ANSWER)
                answer_headers = answer.headers
        except urllib.error.HTTPError as answer:
            with answer:
                try:
                    raise ApiError(answer.code, answer.headers, _read(answer, MAX_REQUEST)) from None
                except (OSError, http.client.HTTPException) as error:
                    raise ConnectionLost(request_id, error) from error
        except (OSError, http.client.HTTPException) as error:  # URLError is an OSError
            if time.monotonic() >= ends:
                raise DeadlineExceeded(f"the time ended before an answer [{request_id}]") from error
            raise ConnectionLost(request_id, error) from error
        if got != status:
            raise ApiError(got, answer_headers, content)
        return answer_headers, content


def verify_webhook(headers, body, *webhook_secrets, tolerance=300, now=None):
    """Checks that the service has signed a message with one of the secrets, within the last
    five minutes, and returns its event. body has the bytes as they arrived. After a rotation
    pass the old and the new secret for a day. Raises WebhookRefused."""
    values = {}
    for name, limit in (("webhook-id", 256), ("webhook-timestamp", 12), ("webhook-signature", 2048)):
        found = [value for other, value in headers.items() if other.lower() == name]
        if len(found) != 1 or not 0 < len(found[0]) <= limit:
            raise WebhookRefused("headers")
        values[name] = found[0]
    if not re.fullmatch("0|[1-9][0-9]*", values["webhook-timestamp"]):
        raise WebhookRefused("headers")
    signed = f"{values['webhook-id']}.{values['webhook-timestamp']}.".encode() + body
    given = [text[3:] for text in values["webhook-signature"].split(" ") if text.startswith("v1,")]
    genuine = False
    for secret in webhook_secrets:
        try:
            key = base64.b64decode(re.sub("^whsec_", "", secret), validate=True)
        except (binascii.Error, ValueError):
            key = b""
        if not key:
            raise ValueError("a webhook secret is empty or malformed; use it as the service has shown it, with whsec_")
        want = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest())
        for signature in given:  # all of them, so that the duration reveals nothing
            genuine |= hmac.compare_digest(signature.encode(), want)
    if not genuine:
        raise WebhookRefused("signature")
    now = time.time() if now is None else now
    if abs(now - int(values["webhook-timestamp"])) > tolerance:
        raise WebhookRefused("time")
    return json.loads(body)


def _prepare(request, key, on_key):
    if not key and not on_key:
        raise ValueError("give the key that you have stored, or on_key, which stores a new one")
    prepared = Prepared(key or new_key(), json.dumps(request, ensure_ascii=False).encode())
    if not key:
        on_key(prepared)
    return prepared


def _pages(read, options):
    while True:
        page = read(**options)
        yield from page.data
        if not page.next_cursor:
            return
        options["cursor"] = page.next_cursor


def _read(answer, limit):
    """Reads an answer. A body that ends early is a lost connection."""
    content = answer.read(limit + 1)
    if len(content) > limit:
        raise ValueError(f"the answer is over {limit} bytes")
    if getattr(answer, "length", None):  # read with a limit does not complain
        raise http.client.IncompleteRead(content, answer.length)
    return content


def _temporary(error):
    """Reports whether the same request may succeed later."""
    if isinstance(error, ApiError):
        return error.status in (429, 503) and (error.retry_after or 0) <= MAX_RETRY_AFTER
    cause = error.__cause__
    untrusted = isinstance(getattr(cause, "reason", cause), ssl.SSLCertVerificationError)
    return not untrusted


def _wait_before(error, attempt):
    """Half of the wait is random, so that the clients do not all return at the same time."""
    if isinstance(error, ApiError) and error.retry_after:
        return error.retry_after + random.uniform(0, max(error.retry_after / 10, FIRST_WAIT))
    wait = min(FIRST_WAIT * 2 ** min(attempt - 1, 16), LAST_WAIT)
    return random.uniform(wait / 2, wait)


def _end(timeout):
    return math.inf if timeout is None else time.monotonic() + timeout


def _sleep(seconds, ends, last):
    """Waits. It fails at once when the time of the caller would end first."""
    if time.monotonic() + seconds >= ends:
        raise DeadlineExceeded("the time ended before a success") from last
    time.sleep(seconds)


def _uuid(text):
    if not re.fullmatch("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", text, re.IGNORECASE):
        raise ValueError(f"{text!r} is not a UUID")  # another text could change the path
    return text

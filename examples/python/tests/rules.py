"""The rules of the client, with a server that answers as each test says.

    python3 examples/python/tests/rules.py
"""

import base64
import hashlib
import hmac
import json
import pathlib
import sys
import threading
import time
import unittest
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))
import fiscalhub  # noqa: E402

TAXPAYER = "0195d3a2-7c1e-7b40-9f15-3a6c2e8d4b01"
INVOICE = "01960b54-9a3d-7e12-8c47-51f0d2a96e30"
LOST, CUT = "lost", "cut"


def ok(data, status=200, **meta):
    return status, {}, json.dumps({"data": data, "meta": {"request_id": "req_1", **meta}})


def refuse(status, code="x", details=None, **headers):
    error = {"code": code, "message": "no", "request_id": "req_2", "details": details or []}
    return status, {name.replace("_", "-"): value for name, value in headers.items()}, json.dumps({"error": error})


MADE = ok({"id": INVOICE, "status": "queued"}, 202)


class Service:
    """Answers each request with the next answer, and with the last one for ever."""

    def __init__(self, *answers):
        self.seen = []
        service = self

        class Handler(BaseHTTPRequestHandler):
            def handle_any(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                service.seen.append((self.command, self.path, self.headers, body))
                answer = answers[min(len(service.seen), len(answers)) - 1]
                if answer == LOST:
                    return
                if answer == CUT:  # in the middle of the answer
                    self.wfile.write(b'HTTP/1.0 202 Accepted\r\nContent-Length: 1000\r\n\r\n{"data"')
                    return
                status, headers, text = answer
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(text.encode())))
                self.end_headers()
                self.wfile.write(text.encode())

            do_GET = do_POST = do_DELETE = handle_any

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def client(self, **options):
        return fiscalhub.Client(f"http://127.0.0.1:{self.server.server_port}", "fh_key", TAXPAYER, **options)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


class Rules(unittest.TestCase):
    def test_the_key_is_stored_before_the_first_request_and_used_in_all(self):
        with Service(LOST, CUT, MADE) as service:
            stored = []

            def save(prepared):
                self.assertEqual(service.seen, [])
                stored.append(prepared)

            service.client().create_invoice({"external_id": "Ñ"}, on_key=save)
            (prepared,) = stored
            self.assertRegex(prepared.key, "^key_[0-9a-f]{32}$")
            self.assertEqual([(headers["Idempotency-Key"], body) for _, _, headers, body in service.seen], [(prepared.key, prepared.body)] * 3)

    def test_nothing_is_sent_without_a_stored_key(self):
        def fail(_):
            raise OSError("disk full")

        with Service(MADE) as service:
            client = service.client()
            self.assertRaisesRegex(OSError, "disk full", client.create_invoice, {}, on_key=fail)
            for key in ("", " x", "ñ", "x" * 201, "a\nb"):
                self.assertRaises(ValueError, client.create_invoice, {}, key=key)
            self.assertRaises(ValueError, client.get_invoice, "../webhook-endpoints")
            self.assertEqual(service.seen, [])

    def test_retries_after_429_and_503_not_before_retry_after(self):
        with Service(refuse(429, Retry_After="1"), refuse(503), MADE) as service:
            begun = time.monotonic()
            service.client(language="es").create_invoice({}, key="k", scenario="rejected", wait=1.2)
            self.assertGreaterEqual(time.monotonic() - begun, 1)
            self.assertEqual(len(service.seen), 3)
            _, path, headers, _ = service.seen[0]
            self.assertEqual(path, f"/v1/taxpayers/{TAXPAYER}/invoices")
            self.assertEqual((headers["Accept-Language"], headers["Sandbox-Scenario"], headers["Prefer"]), ("es", "rejected", "wait=2"))

    def test_other_answers_are_not_repeated(self):
        for answer in (refuse(400), refuse(409), refuse(422), refuse(500), refuse(302, Location="http://other.example/"), refuse(503, Retry_After="121")):
            with Service(answer) as service:
                with self.assertRaises(fiscalhub.ApiError) as caught:
                    service.client().create_invoice({}, key="k")
                self.assertEqual((caught.exception.status, len(service.seen)), (answer[0], 1))

    def test_a_rotation_is_repeated_only_after_429(self):
        with Service(refuse(429), LOST) as service:
            self.assertRaises(fiscalhub.ConnectionLost, service.client().rotate_webhook_secret, INVOICE)
            self.assertEqual(len(service.seen), 2)

    def test_attempts_bound_the_retries(self):
        with Service(LOST) as service:
            self.assertRaises(fiscalhub.ConnectionLost, service.client(attempts=2).get_invoice, INVOICE)
            self.assertEqual(len(service.seen), 2)

    def test_a_wait_beyond_the_deadline_is_not_begun(self):
        with Service(ok({"id": INVOICE, "status": "submitted"}), refuse(503, Retry_After="100")) as service:
            with self.assertRaises(fiscalhub.DeadlineExceeded) as caught:
                service.client().wait_for_outcome(INVOICE, timeout=60)
            self.assertEqual(caught.exception.invoice["status"], "submitted")

    def test_waits_for_an_outcome(self):
        with Service(ok({"status": "outcome_unknown"}), ok({"status": "accepted"})) as service:
            self.assertEqual(service.client().wait_for_outcome(INVOICE).data["status"], "accepted")

    def test_errors_have_details(self):
        details = [{"field": "lines.0.quantity", "code": "required", "message": "is required"}]
        with Service(refuse(422, "validation_error", details), (502, {}, "<html>")) as service:
            with self.assertRaisesRegex(fiscalhub.ApiError, "lines.0.quantity: is required; 1 in all") as caught:
                service.client().get_invoice(INVOICE)
            self.assertEqual((caught.exception.code, caught.exception.request_id), ("validation_error", "req_2"))
            with self.assertRaises(fiscalhub.ApiError) as caught:
                service.client().get_invoice(INVOICE)
            self.assertEqual((caught.exception.status, caught.exception.code), (502, ""))

    def test_lists_are_read_page_by_page(self):
        with Service(ok([1, 2], next_cursor="a b"), ok([3], next_cursor=None)) as service:
            self.assertEqual(list(service.client().all_invoices(status="queued")), [1, 2, 3])
            self.assertTrue(service.seen[1][1].endswith("?status=queued&cursor=a+b"))

    def test_webhooks(self):
        key = b"0123456789abcdef0123456789abcdef"
        secret = "whsec_" + base64.b64encode(key).decode()
        other = "whsec_" + base64.b64encode(b"another secret of 32 bytes......").decode()
        body, at = '{"id":"evt_1","type":"x","data":{"a":"ñ"}}'.encode(), 1_790_000_000
        good = base64.b64encode(hmac.new(key, b"evt_1.%d." % at + body, hashlib.sha256).digest()).decode()
        headers = {"Webhook-Id": "evt_1", "webhook-timestamp": str(at), "webhook-signature": "v1," + good}

        def verify(change=None, content=body, keys=(secret,), now=at):
            return fiscalhub.verify_webhook({**headers, **(change or {})}, content, *keys, now=now)

        self.assertEqual(verify()["data"]["a"], "ñ")
        verify(keys=(other, secret))
        verify({"webhook-signature": "v2,x v1,% v1," + good})
        for reason, options in [
            ("signature", {"keys": (other,)}), ("signature", {"keys": ()}), ("signature", {"content": body + b" "}),
            ("signature", {"change": {"Webhook-Id": "evt_2"}}), ("signature", {"change": {"webhook-timestamp": str(at - 1)}}),
            ("signature", {"change": {"webhook-signature": "v1,ñ v1, ,"}}), ("headers", {"change": {"Webhook-Id": ""}}),
            ("headers", {"change": {"webhook-id": "evt_1"}}), ("headers", {"change": {"webhook-timestamp": "now"}}),
            ("headers", {"change": {"webhook-signature": "x" * 2049}}), ("time", {"now": at + 301}), ("time", {"now": at - 301}),
        ]:
            with self.subTest(reason=reason, options=options):
                with self.assertRaises(fiscalhub.WebhookRefused) as caught:
                    verify(**options)
                self.assertEqual(caught.exception.reason, reason)
        self.assertRaises(ValueError, verify, keys=("whsec_",))


if __name__ == "__main__":
    unittest.main()

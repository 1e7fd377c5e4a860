"""Uses every part of the client against a live service with a simulated authority. It fails
when an answer is not the expected one. systemtest/python_client_test.go runs it."""

import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))
import fiscalhub  # noqa: E402

settings = os.environ["FISCALHUB_URL"], os.environ["FISCALHUB_KEY"], os.environ["FISCALHUB_TAXPAYER"]
client = fiscalhub.Client(*settings)
TIMEOUT = 300


def sale(external_id, total="100.00"):
    return {
        "external_id": external_id, "ecf_type": "32", "issue_date": "2026-11-14", "currency": "DOP", "payment_type": "cash",
        "buyer": {"legal_name": "Consumidor final"},
        "lines": [{
            "line_id": "1", "description": "Café", "item_kind": "product", "quantity": "1", "unit_price": "100.00",
            "discount": None, "taxes": [],
        }],
        "declared_totals": {"subtotal": "100.00", "discount_total": "0.00", "tax_total": "0.00", "total": total},
    }


def refused(call, *arguments, **options):
    try:
        call(*arguments, **options)
    except fiscalhub.ApiError as error:
        return error
    raise AssertionError("the request was not refused")


# From the key to the verdict.
prepared = client.prepare_invoice(sale("tour-1"))
created = client.send_invoice(prepared, timeout=TIMEOUT)
again = client.send_invoice(prepared, timeout=TIMEOUT)
assert again.data["id"] == created.data["id"] and again.replayed and not created.replayed
decided = client.wait_for_outcome(created.data["id"], timeout=TIMEOUT)
assert decided.data["status"] == "accepted", decided
document = client.find_document("tour-1").data
assert document["encf"].startswith("E32")
assert client.find_document("no such sale").data is None
assert client.get_document(document["id"]).data["invoice_id"] == created.data["id"]
assert client.document_xml(document["id"]).startswith(b"<?xml")
assert client.document_pdf(document["id"], format="receipt").startswith(b"%PDF-")

# Lists and the feed.
client.create_invoice(sale("tour-2"), key="tour-2", wait=1)
client.create_invoice(sale("tour-3"), on_key=lambda prepared: None)
assert [invoice["external_id"] for invoice in client.all_invoices(limit=1)] == ["tour-3", "tour-2", "tour-1"]
accepted = set()
for page in client.follow_events(limit=1, wait=5):
    accepted |= {event["data"]["external_id"] for event in page.data if event["type"] == "fiscal_document.accepted"}
    if len(accepted) == 3:
        break
assert len(list(client.all_events(limit=2))) >= 3

# Typed errors, in both languages.
messages = set()
for language in ("en", "es"):
    error = refused(fiscalhub.Client(*settings, language=language).create_invoice, sale("tour-4", total="1.00"), key="tour-4")
    assert (error.status, error.code, error.details[0]["code"]) == (422, "validation_error", "total_mismatch"), error
    assert error.request_id.startswith("req_")
    messages.add(error.details[0]["message"])
assert len(messages) == 2
conflict = refused(client.create_invoice, sale("tour-1"), key="another")
assert conflict.code == "external_id_conflict" and conflict.location.endswith(created.data["id"])

# Webhook endpoints.
endpoint = client.create_webhook_endpoint("https://erp.example.com/fiscal", key="hook").data
assert endpoint["secret"].startswith("whsec_")
assert client.rotate_webhook_secret(endpoint["id"]).data["secret"] != endpoint["secret"]
assert [other["id"] for other in client.all_webhook_endpoints()] == [endpoint["id"]]
client.delete_webhook_endpoint(endpoint["id"])
assert refused(client.rotate_webhook_secret, endpoint["id"]).code == "not_found"

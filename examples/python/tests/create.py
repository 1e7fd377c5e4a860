"""Creates COUNT invoices through a proxy that cuts connections, 16 at a time. Prints what the
service acknowledged as JSON. systemtest/python_client_test.go runs it."""

import json
import os
import pathlib
import sys
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))
import fiscalhub  # noqa: E402

client = fiscalhub.Client(
    os.environ["FISCALHUB_URL"], os.environ["FISCALHUB_KEY"], os.environ["FISCALHUB_TAXPAYER"], attempts=40, attempt_timeout=20)


def create(number):
    return client.create_invoice({
        "external_id": f"sale-{number}", "ecf_type": "32", "issue_date": "2026-11-14", "currency": "DOP", "payment_type": "cash",
        "buyer": {"legal_name": "Consumidor final"},
        "lines": [{
            "line_id": "1", "description": "Café molido 1 lb", "item_kind": "product", "quantity": "2", "unit_price": "100.00",
            "discount": None, "taxes": [{"code": "ITBIS", "label": "ITBIS 18%", "rate_percent": "18"}],
        }],
        "declared_totals": {"subtotal": "200.00", "discount_total": "0.00", "tax_total": "36.00", "total": "236.00"},
    }, on_key=lambda prepared: None)


with ThreadPoolExecutor(16) as workers:
    answers = list(workers.map(create, range(int(os.environ["COUNT"]))))
print(json.dumps({
    "acknowledged": {answer.data["external_id"]: answer.data["id"] for answer in answers},
    "replayed": sum(answer.replayed for answer in answers),
}))

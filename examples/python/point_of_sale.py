"""A point of sale that survives power cuts.

    python3 point_of_sale.py shop.db sell "Café molido 1 lb" 2 100.00
    python3 point_of_sale.py shop.db sync
    python3 point_of_sale.py shop.db show

1. Store. A sale is one row: ticket, idempotency key and the bytes of the request. The row is
   on the disk before the customer gets the receipt and before the first request.
2. Send. Without a connection the sale waits in the table.
3. Reconcile. sync sends every sale that has no answer, with the same key and the same bytes.
   It does not matter whether the service has received it before: there is no second invoice.

The service is named by FISCALHUB_URL, FISCALHUB_KEY and FISCALHUB_TAXPAYER.
"""

import argparse
import datetime
import json
import os
import secrets
import sqlite3
import sys
from decimal import ROUND_HALF_UP, Decimal

import fiscalhub

TABLES = """
CREATE TABLE IF NOT EXISTS shop (name TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS sales (
  ticket      INTEGER PRIMARY KEY AUTOINCREMENT,
  external_id TEXT NOT NULL UNIQUE,
  key         TEXT NOT NULL UNIQUE,
  body        BLOB NOT NULL,
  total       TEXT NOT NULL,
  invoice_id  TEXT,          -- once the service has acknowledged the sale
  status      TEXT NOT NULL, -- waiting, then the status of the invoice, or refused
  problem     TEXT           -- why the service refused the sale: a person corrects it
);
"""


def open_shop(path):
    """Opens the database of a shop, and creates it at the first use."""
    db = sqlite3.connect(path, isolation_level=None, timeout=30)
    db.row_factory = sqlite3.Row
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = FULL")  # a commit is on the disk when it returns
    db.executescript(TABLES)
    # The name makes the tickets of two shops, or of a new database, different.
    db.execute("INSERT INTO shop SELECT ? WHERE NOT EXISTS (SELECT 1 FROM shop)", [secrets.token_hex(4)])
    return db


def service():
    return fiscalhub.Client(os.environ["FISCALHUB_URL"], os.environ["FISCALHUB_KEY"], os.environ["FISCALHUB_TAXPAYER"], language="es")


def store_sale(db, client, description, quantity, price):
    """Stores a sale, and returns its ticket. After this the sale cannot be lost."""
    cents = Decimal("0.01")
    subtotal = (Decimal(quantity) * Decimal(price)).quantize(cents, ROUND_HALF_UP)
    tax = (subtotal * Decimal("0.18")).quantize(cents, ROUND_HALF_UP)
    db.execute("BEGIN IMMEDIATE")
    try:
        (shop,) = db.execute("SELECT name FROM shop").fetchone()
        (ticket,) = db.execute("SELECT coalesce(max(ticket), 0) + 1 FROM sales").fetchone()
        external_id = f"{shop}-{ticket:06}"
        prepared = client.prepare_invoice({
            "external_id": external_id,
            "ecf_type": "32",
            "issue_date": datetime.date.today().isoformat(),
            "currency": "DOP",
            "payment_type": "cash",
            "buyer": {"legal_name": "Consumidor final"},
            "lines": [{
                "line_id": "1", "description": description, "item_kind": "product",
                "quantity": quantity, "unit_price": price, "discount": None,
                "taxes": [{"code": "ITBIS", "label": "ITBIS 18%", "rate_percent": "18"}],
            }],
            "declared_totals": {
                "subtotal": str(subtotal), "discount_total": "0.00", "tax_total": str(tax), "total": str(subtotal + tax),
            },
        })
        db.execute(
            "INSERT INTO sales (ticket, external_id, key, body, total, status) VALUES (?, ?, ?, ?, ?, 'waiting')",
            [ticket, external_id, prepared.key, prepared.body, str(subtotal + tax)])
        db.execute("COMMIT")
    except BaseException:
        db.execute("ROLLBACK")
        raise
    return ticket


def send_sale(db, client, ticket, timeout=30):
    """Sends a stored sale. Returns False when the service cannot be reached: it waits."""
    sale = db.execute("SELECT * FROM sales WHERE ticket = ?", [ticket]).fetchone()
    try:
        answer = client.send_invoice(fiscalhub.Prepared(sale["key"], sale["body"]), timeout=timeout)
    except (fiscalhub.ConnectionLost, fiscalhub.DeadlineExceeded):
        return False
    except fiscalhub.ApiError as error:
        # These answers say nothing about the sale, only about the service or the setup.
        if error.status in (401, 403, 408, 429) or error.status >= 500 or error.code == "operational_readiness_failed":
            return False
        db.execute("UPDATE sales SET status = 'refused', problem = ? WHERE ticket = ?", [str(error), ticket])
        return True
    db.execute("UPDATE sales SET invoice_id = ?, status = ? WHERE ticket = ?", [answer.data["id"], answer.data["status"], ticket])
    return True


def sync(db, client):
    """Sends the sales that wait, oldest first, and asks for the outcome of the others. Returns
    how many sales are not finished."""
    for row in db.execute("SELECT ticket FROM sales WHERE status = 'waiting' ORDER BY ticket").fetchall():
        if not send_sale(db, client, row["ticket"]):
            break  # the others would fail too
    marks = ", ".join("?" * len(fiscalhub.DECIDED))
    open_sales = f"SELECT ticket, invoice_id FROM sales WHERE status <> 'refused' AND status NOT IN ({marks})"
    for row in db.execute(open_sales, [*fiscalhub.DECIDED]).fetchall():
        if row["invoice_id"]:
            try:
                status = client.get_invoice(row["invoice_id"], timeout=30).data["status"]
            except (fiscalhub.ApiError, fiscalhub.ConnectionLost, fiscalhub.DeadlineExceeded):
                break  # the next sync asks again
            db.execute("UPDATE sales SET status = ? WHERE ticket = ?", [status, row["ticket"]])
    return len(db.execute(open_sales, [*fiscalhub.DECIDED]).fetchall())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("database")
    commands = parser.add_subparsers(dest="command", required=True)
    sell = commands.add_parser("sell", help="store one sale and send it")
    for name in ("description", "quantity", "price"):
        sell.add_argument(name)
    demo = commands.add_parser("demo", help="sell until there are COUNT sales")
    demo.add_argument("count", type=int)
    commands.add_parser("sync", help="send what waits, and ask for outcomes")
    commands.add_parser("show", help="print the sales as JSON")
    arguments = parser.parse_args()

    db, client = open_shop(arguments.database), service()
    if arguments.command == "show":
        columns = "ticket, external_id, total, invoice_id, status, problem"
        print(json.dumps([dict(row) for row in db.execute(f"SELECT {columns} FROM sales ORDER BY ticket")]))
    elif arguments.command == "sync":
        left = sync(db, client)
        print(f"{left} sales are not finished")
        sys.exit(1 if left else 0)
    elif arguments.command == "sell":
        ticket = store_sale(db, client, arguments.description, arguments.quantity, arguments.price)
        print(f"ticket {ticket}", flush=True)  # the customer gets the receipt now
        send_sale(db, client, ticket)
    else:
        while True:
            (sold,) = db.execute("SELECT count(*) FROM sales").fetchone()
            if sold >= arguments.count:
                break
            ticket = store_sale(db, client, "Café molido 1 lb", "2", "100.00")
            print(f"ticket {ticket}", flush=True)
            send_sale(db, client, ticket)


if __name__ == "__main__":
    main()

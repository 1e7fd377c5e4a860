"""Compares the sales of a point of sale with the invoices of the service, once a night.

    python3 nightly_reconciliation.py shop.db --days 2
    python3 nightly_reconciliation.py shop.db --days 2 --repair

It prints one line for each difference, and ends with status 1 when there are any:

    missing   the shop sold, and the service has no invoice; --repair sends the sale again with
              its first key, so there is no second invoice
    unknown   the service has an invoice that the shop does not have; a person must look
    total     both have the sale, with different amounts; a person must look
    status    the shop does not know the latest status; --repair takes it over
    rejected  the authority rejected the document; a person corrects the sale

It reads the database of point_of_sale.py. The service is named by FISCALHUB_URL,
FISCALHUB_KEY and FISCALHUB_TAXPAYER.
"""

import argparse
import datetime
import sys
from decimal import Decimal

import fiscalhub
from point_of_sale import open_shop, send_sale, service


def read_invoices(client, since):
    """Returns the invoices that were created since an instant, by external id. The list has the
    newest first, so the reading ends at the first older one."""
    found = {}
    for invoice in client.all_invoices(limit=100, timeout=120):
        if datetime.datetime.fromisoformat(invoice["created_at"].replace("Z", "+00:00")) < since:
            break
        found[invoice["external_id"]] = invoice
    return found


def find_invoice(client, external_id):
    """Looks one sale up: it may be older than what was read."""
    page = client.list_invoices(external_id=external_id, timeout=60)
    return page.data[0] if page.data else None


def compare(db, client, since, repair):
    """Returns the differences as lines of text, without those that were repaired."""
    invoices = read_invoices(client, since)
    left = []
    for sale in db.execute("SELECT * FROM sales ORDER BY ticket").fetchall():
        name, done = sale["external_id"], sale["status"] in fiscalhub.DECIDED
        invoice = invoices.pop(name, None)
        if invoice is None and done and sale["invoice_id"]:
            continue  # of an earlier night
        invoice = invoice or find_invoice(client, name)
        if invoice is None:
            if sale["status"] != "refused" and not (repair and send_sale(db, client, sale["ticket"])):
                left.append(f"missing   {name}")
            elif sale["status"] == "refused":
                left.append(f"missing   {name}: {sale['problem']}")
            continue
        if Decimal(invoice["totals"]["total"]) != Decimal(sale["total"]):
            left.append(f"total     {name}: {sale['total']} here, {invoice['totals']['total']} there")
        if (sale["invoice_id"], sale["status"]) != (invoice["id"], invoice["status"]):
            if repair:
                db.execute(
                    "UPDATE sales SET invoice_id = ?, status = ? WHERE ticket = ?",
                    [invoice["id"], invoice["status"], sale["ticket"]])
            else:
                left.append(f"status    {name}: {sale['status']} here, {invoice['status']} there")
        if invoice["status"] in ("rejected", "validation_failed"):
            left.append(f"rejected  {name}")
    return left + [f"unknown   {name}" for name in invoices]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("database")
    parser.add_argument("--days", type=int, default=2, help="how many days to read")
    parser.add_argument("--repair", action="store_true", help="send missing sales, take statuses over")
    arguments = parser.parse_args()
    since = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(days=arguments.days)
    left = compare(open_shop(arguments.database), service(), since, arguments.repair)
    print("\n".join(left) if left else "no difference")
    sys.exit(1 if left else 0)


if __name__ == "__main__":
    main()

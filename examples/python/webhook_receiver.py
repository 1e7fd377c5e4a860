"""Receives the events of the service by webhook.

    python3 webhook_receiver.py events.db serve --secrets FILE --port 8090
    python3 webhook_receiver.py events.db show

FILE has the secret of the endpoint. During a rotation it has both secrets, one on each line.
It is read for each message, so a rotation needs no restart. Put a proxy with TLS in front.

Each event is stored before it is answered with 204: the service sends an event again when its answer is lost.
The primary key of the table finds repeated events. Events may arrive in any order: an older
status does not replace a newer one.
"""

import argparse
import json
import pathlib
import sqlite3
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import fiscalhub

TABLES = """
CREATE TABLE IF NOT EXISTS events (id TEXT PRIMARY KEY, type TEXT NOT NULL, body BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS documents (
  id TEXT PRIMARY KEY, external_id TEXT NOT NULL, status TEXT NOT NULL, sequence INTEGER NOT NULL
);
"""
MAX_BODY = 1 << 20


def open_database(path):
    db = sqlite3.connect(path, isolation_level=None, timeout=30)
    db.row_factory = sqlite3.Row
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = FULL")
    db.executescript(TABLES)
    return db


def store_event(db, event, body):
    """Stores an event and its effect in one transaction. A repeated event has no effect."""
    db.execute("BEGIN IMMEDIATE")
    try:
        new = db.execute("INSERT INTO events VALUES (?, ?, ?) ON CONFLICT DO NOTHING", [event["id"], event["type"], body]).rowcount
        data = event["data"]
        if new and data.get("object") in ("fiscal_document", "invoice"):
            db.execute(
                "INSERT INTO documents VALUES (?, ?, ?, ?) ON CONFLICT (id) DO UPDATE"
                " SET status = excluded.status, sequence = excluded.sequence WHERE excluded.sequence > documents.sequence",
                [data["invoice_id"], data["external_id"], data["status"], data["sequence"]])
        db.execute("COMMIT")
    except BaseException:
        db.execute("ROLLBACK")
        raise


class Receiver(BaseHTTPRequestHandler):
    database = secrets = None  # paths, set by main
    timeout = 30  # of a sender that stops in the middle

    def do_POST(self):
        length = self.headers.get("Content-Length", "")
        if not length.isdigit() or int(length) > MAX_BODY:
            self.answer(413)
            return
        body = self.rfile.read(int(length))
        try:
            event = fiscalhub.verify_webhook(self.headers, body, *pathlib.Path(self.secrets).read_text().split())
        except fiscalhub.WebhookRefused:
            self.answer(401)
            return
        db = open_database(self.database)
        try:
            store_event(db, event, body)
        finally:
            db.close()
        self.answer(204)  # only now: the event is on the disk

    def answer(self, status):
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass  # the path and the headers of strangers do not belong into a log


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("database")
    commands = parser.add_subparsers(dest="command", required=True)
    serve = commands.add_parser("serve", help="receive events")
    serve.add_argument("--secrets", required=True, metavar="FILE")
    serve.add_argument("--port", type=int, default=8090)
    commands.add_parser("show", help="print how many events there are, and the documents")
    arguments = parser.parse_args()
    db = open_database(arguments.database)
    if arguments.command == "show":
        (events,) = db.execute("SELECT count(*) FROM events").fetchone()
        documents = {row["external_id"]: row["status"] for row in db.execute("SELECT * FROM documents")}
        print(json.dumps({"events": events, "documents": documents}))
        return
    Receiver.database, Receiver.secrets = arguments.database, arguments.secrets
    server = ThreadingHTTPServer(("127.0.0.1", arguments.port), Receiver)
    print(f"http://127.0.0.1:{server.server_port}/", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()

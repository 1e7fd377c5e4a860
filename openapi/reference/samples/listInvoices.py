cursor = ""
while cursor is not None:
    query = "status=accepted&limit=50" + (cursor and "&cursor=" + cursor)
    page = json.load(call("GET", TAXPAYER + "/invoices?" + query))
    for invoice in page["data"]:
        print(invoice["external_id"], invoice["status"])
    cursor = page["meta"]["next_cursor"]

answer = call("GET", f"{TAXPAYER}/invoices/{invoice_id}", {"Prefer": "wait=20"})
invoice = json.load(answer)["data"]
print(invoice["status"])

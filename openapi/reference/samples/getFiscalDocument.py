answer = call("GET", f"{TAXPAYER}/fiscal-documents/{document_id}")
document = json.load(answer)["data"]
print(document["encf"], document["status_messages"])

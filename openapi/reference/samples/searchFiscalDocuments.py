answer = call("GET", TAXPAYER + "/fiscal-documents?external_id=FA-2026-0418")
for document in json.load(answer)["data"]:  # at most one
    print(document["id"], document["status"])

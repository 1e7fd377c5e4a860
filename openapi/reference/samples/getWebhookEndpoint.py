answer = call("GET", f"{TAXPAYER}/webhook-endpoints/{endpoint_id}")
print(json.load(answer)["data"]["status"])

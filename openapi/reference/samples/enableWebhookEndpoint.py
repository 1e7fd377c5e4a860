answer = call("POST", f"{TAXPAYER}/webhook-endpoints/{endpoint_id}/enable")
print(json.load(answer)["data"]["status"])

answer = call("POST", f"{TAXPAYER}/webhook-endpoints/{endpoint_id}/rotate-secret")
print(json.load(answer)["data"]["secret"])

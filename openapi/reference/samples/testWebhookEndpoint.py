answer = call("POST", f"{TAXPAYER}/webhook-endpoints/{endpoint_id}/test")
print(json.load(answer)["data"]["delivered"])

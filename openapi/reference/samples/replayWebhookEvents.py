answer = call("POST", f"{TAXPAYER}/webhook-endpoints/{endpoint_id}/replay", {}, {"failed": True})
print(json.load(answer)["data"]["events"])

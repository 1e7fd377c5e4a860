page = json.load(call("GET", f"{TAXPAYER}/webhook-endpoints/{endpoint_id}/deliveries"))
for delivery in page["data"]:
    print(delivery["event_id"], delivery["attempt"], delivery["http_status"])

call("DELETE", f"{TAXPAYER}/webhook-endpoints/{endpoint_id}")

answer = call("POST", TAXPAYER + "/webhook-endpoints", {"Idempotency-Key": "erp-endpoint"},
              {"url": "https://erp.example.com/fiscal", "events": ["*"]})
endpoint = json.load(answer)["data"]
print(endpoint["id"], endpoint["secret"])  # store the secret

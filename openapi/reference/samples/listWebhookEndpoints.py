page = json.load(call("GET", TAXPAYER + "/webhook-endpoints"))
for endpoint in page["data"]:
    print(endpoint["id"], endpoint["url"], endpoint["status"])

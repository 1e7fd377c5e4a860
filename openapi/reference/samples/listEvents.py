query = "limit=100" + (cursor and "&cursor=" + cursor)
page = json.load(call("GET", TAXPAYER + "/events?" + query))
for event in page["data"]:
    print(event["id"], event["type"])
cursor = page["meta"]["next_cursor"]  # store it with what you have processed

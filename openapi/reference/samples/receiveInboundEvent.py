import base64, hashlib, hmac, time

with open("response.xml", "rb") as file:
    xml = base64.b64encode(file.read()).decode()
message = {"type": "ecf.commercial_response", "data": {"encf": "E310000000157", "xml_base64": xml}}
secret = base64.b64decode(os.environ["SOURCE_SECRET"].removeprefix("whsec_"))
id, now = "msg_2mXqPzT0", str(int(time.time()))
mac = hmac.new(secret, f"{id}.{now}.{json.dumps(message)}".encode(), hashlib.sha256)
signature = "v1," + base64.b64encode(mac.digest()).decode()
answer = call("POST", f"/v1/events/inbound/{source_id}", {
    "webhook-id": id, "webhook-timestamp": now, "webhook-signature": signature}, message)
print(json.load(answer)["data"])

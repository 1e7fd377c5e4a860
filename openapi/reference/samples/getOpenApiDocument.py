answer = call("GET", "/v1/openapi.json")
with open("openapi.json", "wb") as file:
    file.write(answer.read())

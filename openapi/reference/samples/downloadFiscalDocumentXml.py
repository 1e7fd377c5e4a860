answer = call("GET", f"{TAXPAYER}/fiscal-documents/{document_id}/xml")
with open("signed.xml", "wb") as file:
    file.write(answer.read())

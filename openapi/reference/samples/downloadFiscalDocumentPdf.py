answer = call("GET", f"{TAXPAYER}/fiscal-documents/{document_id}/pdf?format=receipt")
with open("page.pdf", "wb") as file:
    file.write(answer.read())

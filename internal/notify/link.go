package notify

import "bytes"

// selfLink is how an event begins to tell where its object is found.
var selfLink = []byte(`"links":{"self":"/v1/`)

// Absolute gives the link of an event the address of the service, which is not
// known where events are made. All else stays as it is, byte for byte. No text
// within an event can be taken for the link: its quotes would be escaped.
func Absolute(body []byte, base string) []byte {
	at := bytes.Index(body, selfLink)
	if at < 0 {
		return body
	}
	at += len(selfLink) - len("/v1/")
	whole := make([]byte, 0, len(body)+len(base))
	whole = append(whole, body[:at]...)
	whole = append(whole, base...)
	return append(whole, body[at:]...)
}

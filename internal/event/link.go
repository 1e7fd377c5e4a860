package event

import "bytes"

// Links are the links of an event's data.
type Links struct {
	Self string `json:"self"`
}

// DocumentLinks returns the links of a fiscal document. They are paths without a
// host, because only the sender knows the public address of the service: see
// Absolute.
func DocumentLinks(taxpayerID, documentID string) Links {
	return Links{Self: "/v1/taxpayers/" + taxpayerID + "/fiscal-documents/" + documentID}
}

// selfLink is the beginning of a relative link in an encoded event.
var selfLink = []byte(`"links":{"self":"/v1/`)

// Absolute returns the body of an event with an absolute link: it inserts base, the
// public address of the service, in front of the path. It changes no other byte and
// leaves body itself as it is. A string inside the event cannot look like the link,
// because JSON escapes its quotes.
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

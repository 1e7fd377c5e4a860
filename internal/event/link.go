package event

import "bytes"

// Links are the links of an event's data.
type Links struct {
	Self string `json:"self"`
}

// DocumentLinks returns the links of a fiscal document. They are paths: only the
// sender of an event knows the public address of the service. See Absolute.
func DocumentLinks(taxpayerID, documentID string) Links {
	return Links{Self: "/v1/taxpayers/" + taxpayerID + "/fiscal-documents/" + documentID}
}

// selfLink is the text in front of the path of a relative link.
var selfLink = []byte(`"links":{"self":"/v1/`)

// Absolute returns the body of an event with the public address of the service in
// front of its link. All other bytes stay as they are. Text within the event
// cannot be mistaken for the link, because JSON escapes its quotes.
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

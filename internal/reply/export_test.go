package reply

import "github.com/fiscalhub/fiscalhub/internal/xmlsig"

// ReadUnsigned reads a response without a signature.
func ReadUnsigned(d *xmlsig.Document) (Response, error) { return readResponse(d.Root()) }

package simulator

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"strconv"

	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

const (
	maxUpload = 8 << 20
	// multipartOverhead is the size that a multipart body may have besides its file.
	multipartOverhead = 64 << 10
)

// An upload is the file that a call sends.
type upload struct {
	name string
	raw  []byte
}

// readUpload reads the file of a call. If it is not valid, it returns the response that
// refuses it.
func (c *call) readUpload() (upload, *response) {
	refuse := func(status int, text string) (upload, *response) {
		c.entry.Class = "refused upload"
		a := jsonResponse(status, text)
		return upload{}, &a
	}
	if c.r.ContentLength < 0 {
		c.s.addViolation(c, ChunkedUpload, "the upload has no Content-Length")
		return refuse(http.StatusBadRequest, "El multipart no puede estar vacío")
	}
	if c.r.ContentLength > maxUpload+multipartOverhead {
		return refuse(http.StatusRequestEntityTooLarge, "El archivo es demasiado grande.")
	}
	body := make([]byte, c.r.ContentLength)
	if _, err := io.ReadFull(c.body, body); err != nil {
		return refuse(http.StatusBadRequest, "El multipart no puede estar vacío")
	}
	c.entry.BytesIn = len(body)
	kind, parameters, err := mime.ParseMediaType(c.r.Header.Get("Content-Type"))
	if err != nil || kind != "multipart/form-data" || parameters["boundary"] == "" {
		return refuse(http.StatusBadRequest, "Se espera multipart/form-data.")
	}
	up, err := filePart(body, parameters["boundary"])
	switch {
	case err != nil:
		return refuse(http.StatusBadRequest, "El multipart no tiene la parte xml.")
	case len(up.raw) == 0:
		return refuse(http.StatusBadRequest, "El archivo xml está vacío.")
	case len(up.raw) > maxUpload:
		return refuse(http.StatusRequestEntityTooLarge, "El archivo es demasiado grande.")
	}
	return up, nil
}

// filePart returns the part with the name xml.
func filePart(body []byte, boundary string) (upload, error) {
	reader := multipart.NewReader(bytes.NewReader(body), boundary)
	for {
		part, err := reader.NextRawPart()
		if err != nil {
			return upload{}, err
		}
		if part.FormName() != "xml" {
			continue
		}
		raw, err := io.ReadAll(part)
		return upload{part.FileName(), raw}, err
	}
}

// countUnstoredUpload reads an upload that is not stored, and counts the post.
func (c *call) countUnstoredUpload() {
	if c.service != Reception && c.service != RFCE {
		c.countPost("")
		return
	}
	up, refused := c.readUpload()
	if refused != nil {
		return
	}
	if d, err := xmlsig.Parse(up.raw, xmlsig.InvoiceLimits()); err == nil {
		f := readFacts(d.Root())
		c.key.rnc, c.key.encf = f.RNC, f.ENCF
	}
	c.countPost(sha256Hex(up.raw))
}

// countPost counts a post whose document is not stored.
func (c *call) countPost(digest string) {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	if p := c.s.state.Peers[c.peer]; p != nil && c.service == PeerReception && c.key.encf != "" {
		p.Posts[c.key.rnc+c.key.encf]++
	}
	if c.key.encf == "" || c.service != Reception && c.service != RFCE {
		return
	}
	n := c.s.state.Environments[c.amb].number(c.key.rnc, c.key.encf)
	n.Posts++
	if n.First == "" {
		n.First = digest
	}
}

// A receptionError is the body of a refusal by the reception.
type receptionError struct {
	TrackID *string `json:"trackId"`
	Error   string  `json:"error"`
	Text    string  `json:"mensaje"`
}

// wrongFileName returns the response to an upload whose file name does not match the
// document.
func wrongFileName() response {
	type message struct {
		Code int    `json:"codigo"`
		Text string `json:"valor"`
	}
	return jsonResponse(http.StatusBadRequest, struct {
		Messages []message `json:"mensajes"`
	}{[]message{{3243, "La longitud del nombre del archivo no es válida."}}})
}

// readDocument reads an uploaded document. It makes the checks that come before reception:
// XML with the right root, and the file name. If one fails, it returns the response that
// refuses the upload.
func (c *call) readDocument(root string) (*examination, *response) {
	up, refused := c.readUpload()
	if refused != nil {
		return nil, refused
	}
	refuse := func(reason, text string) (*examination, *response) {
		c.entry.Class = "refused upload"
		a := jsonResponse(http.StatusBadRequest, receptionError{nil, reason, text})
		return nil, &a
	}
	x := &examination{rfce: root == "RFCE", file: up.name, raw: up.raw, sha: sha256Hex(up.raw)}
	verified, err := xmlsig.Verify(up.raw, xmlsig.InvoiceLimits())
	if errors.Is(err, xmlsig.ErrMalformed) {
		return refuse("El archivo no es un XML válido.", err.Error())
	}
	x.verified, x.signatureErr = verified, err
	if err == nil {
		x.root = verified.Root()
	} else {
		d, err := xmlsig.Parse(up.raw, xmlsig.InvoiceLimits())
		if err != nil {
			return refuse("El archivo no es un XML válido.", err.Error())
		}
		x.root = d.Root()
	}
	x.facts = readFacts(x.root)
	if verified != nil {
		x.facts.Signer = xmlsig.Person(verified.Certificate)
		if !x.rfce {
			x.facts.Code = verified.Value[:min(6, len(verified.Value))]
		}
	}
	c.key.rnc, c.key.encf = x.facts.RNC, x.facts.ENCF
	if name := x.root.Name(); name != root {
		if name == "ECF" || name == "RFCE" {
			c.s.addViolation(c, WrongHost, name+" was sent to "+c.host)
		}
		return refuse("El archivo no es de este servicio.", "La raíz es "+strconv.Quote(name)+" y no "+root+".")
	}
	if up.name != x.facts.RNC+x.facts.ENCF+".xml" {
		c.s.addViolation(c, FileName, strconv.Quote(up.name)+" is not the name of "+x.facts.RNC+x.facts.ENCF)
		c.entry.Class = "refused upload"
		a := wrongFileName()
		return nil, &a
	}
	return x, nil
}

package oracle

import "strings"

// responses: a response of the buyer that the service has confirmed is one event, however
// often and on whatever way it came. One that comes before its signer is known, and again
// afterwards, is an event of each kind.
func (c *checker) responses() {
	documents := map[string]string{} // by e-NCF
	for _, i := range c.Invoices {
		documents[i.ENCF] = i.DocumentID
	}
	said := map[string]int{}
	for _, e := range c.Events {
		kind, is := strings.CutPrefix(e.Kind, "fiscal_document.commercial_response")
		if !is {
			continue
		}
		rejects := strings.Contains(e.Body, `"result":"rejected"`)
		said[e.DocumentID+kind+result(rejects)]++
		if n := said[e.DocumentID+kind+result(rejects)]; n > 1 {
			c.fail("a response is one event", c.byDoc[e.DocumentID].ENCF, "%d events say that the buyer%s", n, result(rejects))
		}
	}
	for _, r := range c.Responses {
		document := documents[r.ENCF]
		if !r.Answered || document == "" || !c.survives(r.Epoch, r.Ended) {
			continue
		}
		if said[document+result(r.Rejects)]+said[document+"_unconfirmed"+result(r.Rejects)] == 0 {
			c.fail("no confirmed response is lost", r.ENCF, "no event says that the buyer%s", result(r.Rejects))
		}
	}
}

func result(rejects bool) string {
	if rejects {
		return " rejects"
	}
	return " accepts"
}

// differences: the comparison raises no alarm about a document that only we have sent, and
// that the authority shows as we do.
func (c *checker) differences() {
	for _, document := range c.Differences {
		inv := c.byDoc[document]
		if c.Doubled[inv.ENCF] || c.SplitTracks || len(c.Copies) > 0 {
			continue
		}
		c.fail("the comparison raises no false alarm", inv.ENCF, "nobody else has sent it, and it is %s", inv.Status)
	}
}

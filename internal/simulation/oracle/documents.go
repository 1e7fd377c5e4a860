package oracle

import (
	"fmt"
	"slices"
)

// numbers: a number belongs to one document with one content, and no number of a range is
// skipped.
func (c *checker) numbers() {
	documents := map[string]string{} // by number
	for _, i := range c.Issued {
		number := i.RNC + i.ENCF
		if other, twice := documents[number]; twice {
			c.fail("a number is used once", i.ENCF, "documents %s and %s have it", other, i.DocumentID)
		}
		documents[number] = i.DocumentID
		if inv, ok := c.byDoc[i.DocumentID]; !ok || inv.ENCF != i.ENCF {
			c.fail("a number belongs to an invoice", i.ENCF, "the invoice of its document has %q", inv.ENCF)
		}
		if slices.Contains(c.Abandoned, i.ENCF) {
			c.fail("an abandoned number is not used", i.ENCF, "document %s has it", i.DocumentID)
		}
	}
	for _, i := range c.Invoices {
		if _, ok := c.issued[i.DocumentID]; !ok && i.ENCF != "" {
			c.fail("a number belongs to an invoice", i.ExternalID, "the ledger does not have %s", i.ENCF)
		}
	}
	for _, r := range c.Ranges {
		for n := r.First; n < r.Next; n++ {
			encf := fmt.Sprintf("E%s%010d", r.Type, n)
			used := slices.ContainsFunc(c.Issued, func(i Issued) bool { return i.ENCF == encf })
			if !used && !slices.Contains(c.Abandoned, encf) {
				c.fail("no number is skipped", encf, "it was taken, and no document and no release explains it")
			}
		}
	}
	contents := map[string]string{}
	for _, d := range c.Authority {
		if d.Foreign {
			continue
		}
		number := d.RNC + d.ENCF
		if other, seen := contents[number]; seen && other != d.Digest {
			c.fail("a number has one content", d.ENCF, "the authority has two")
		}
		contents[number] = d.Digest
	}
	for _, i := range c.Issued {
		if got, sent := contents[i.RNC+i.ENCF]; sent && got != i.Sent {
			c.fail("a number has one content", i.ENCF, "the authority has other bytes than the database")
		}
	}
	for number := range contents {
		encf := number[len(number)-13:]
		if documents[number] == "" && !slices.Contains(c.Abandoned, encf) {
			c.fail("every document at the authority is known", encf, "the database neither has it nor has abandoned its number")
		}
	}
}

// submissions: a document that arrived is not sent again, and the authority finds no error
// in what the service has built.
func (c *checker) submissions() {
	count := map[string]int{}
	for _, d := range c.Authority {
		if d.Foreign {
			continue
		}
		if d.Faulty {
			c.fail("documents are valid", d.ENCF, "the authority finds an error in it")
		}
		if count[d.ENCF]++; count[d.ENCF] == 2 && !c.SplitTracks && !c.Doubled[d.ENCF] {
			c.fail("a document that arrived is not sent again", d.ENCF, "the authority has it twice")
		}
	}
}

// attempts: every attempt sent the stored bytes, and what was sent is recorded.
func (c *checker) attempts() {
	count := map[string]int{}
	for _, a := range c.Attempts {
		i, ok := c.issued[a.DocumentID]
		if !ok || a.Sent != i.Sent {
			c.fail("every attempt sends the stored bytes", i.ENCF, "attempt %d of document %s sent others", a.Number, a.DocumentID)
		}
		count[a.DocumentID]++
		if a.Open {
			c.fail("every attempt ends", i.ENCF, "attempt %d is open", a.Number)
		}
	}
	for _, i := range c.Issued {
		sent := slices.ContainsFunc(c.Authority, func(d Document) bool { return !d.Foreign && d.RNC == i.RNC && d.ENCF == i.ENCF })
		if sent && count[i.DocumentID] == 0 {
			c.fail("every attempt is recorded", i.ENCF, "the authority has the document, and no attempt is recorded")
		}
	}
}

// verdicts: a final status is the authority's verdict on the bytes of the document.
func (c *checker) verdicts() {
	for _, inv := range c.Invoices {
		i, numbered := c.issued[inv.DocumentID]
		if inv.Status == "queued" || inv.Status == "validation_failed" {
			continue // never sent, as far as the status says
		}
		if !numbered {
			c.fail("a document that was sent has a number", inv.ExternalID, "it is %s", inv.Status)
			continue
		}
		var codes []int
		foreign, others, tracks := false, false, []string{}
		for _, d := range c.Authority {
			if d.RNC != i.RNC || d.ENCF != i.ENCF {
				continue
			}
			if d.Foreign {
				foreign, others = foreign || d.Code != 2, true
				continue
			}
			if d.Digest == i.Sent {
				codes, tracks = append(codes, d.Code), append(tracks, d.TrackID)
			}
		}
		accepted, conditional := slices.Contains(codes, 1), slices.Contains(codes, 4)
		switch inv.Status {
		case "accepted":
			if !accepted {
				c.fail("a status is the authority's verdict", inv.ExternalID, "%s is accepted; the authority has %v for its bytes", i.ENCF, codes)
			}
		case "accepted_conditional":
			if !conditional {
				c.fail("a status is the authority's verdict", inv.ExternalID, "%s is accepted conditionally; the authority has %v for its bytes", i.ENCF, codes)
			}
		case "delivered":
			if !accepted && !conditional {
				c.fail("a status is the authority's verdict", inv.ExternalID, "%s is delivered; the authority has %v for its bytes", i.ENCF, codes)
			}
		case "rejected":
			if accepted || conditional || len(codes) == 0 && !foreign {
				c.fail("a status is the authority's verdict", inv.ExternalID, "%s is rejected; the authority has %v for its bytes", i.ENCF, codes)
			}
		}
		if inv.TrackID != "" && final(inv.Status) && !others && !slices.Contains(tracks, inv.TrackID) {
			c.fail("a track id is the document's own", inv.ExternalID, "%s has %s, which is another submission's", i.ENCF, inv.TrackID)
		}
		if (accepted || conditional) && i.State != "used" && final(inv.Status) {
			c.fail("an accepted number is used up", inv.ExternalID, "the number %s is %s", i.ENCF, i.State)
		}
	}
}

// buyers: a buyer gets the signed bytes of accepted invoices of type 31, and a delivered
// document was received.
func (c *checker) buyers() {
	received := map[string]string{}
	for _, r := range c.Buyers {
		received[r.Number] = r.Digest
	}
	given := map[string]bool{} // documents whose delivery has failed for good
	for _, e := range c.Events {
		if e.Kind == "fiscal_document.delivery_failed" {
			given[e.DocumentID] = true
		}
	}
	for _, inv := range c.Invoices {
		if c.BuyerReceives && inv.Type == "31" && (inv.Status == "accepted" || inv.Status == "accepted_conditional") && !given[inv.DocumentID] {
			c.fail("an accepted document reaches its buyer", inv.ExternalID, "%s is %s and was not delivered", inv.ENCF, inv.Status)
		}
	}
	known := map[string]bool{}
	for _, i := range c.Issued {
		number := i.RNC + i.ENCF
		known[number] = true
		digest, got := received[number]
		inv := c.byDoc[i.DocumentID]
		if got && digest != i.XML {
			c.fail("the buyer gets the signed document", i.ENCF, "it got other bytes")
		}
		if got && (inv.Status == "rejected" || inv.Type != "31") {
			c.fail("the buyer gets accepted documents of type 31", i.ENCF, "it is %s and of type %s", inv.Status, inv.Type)
		}
		if inv.Status == "delivered" && !got {
			c.fail("a delivered document was received", i.ENCF, "the buyer does not have it")
		}
	}
	for number := range received {
		if encf := number[len(number)-13:]; !known[number] && !slices.Contains(c.Abandoned, encf) {
			c.fail("the buyer gets the signed document", encf, "the database does not have it")
		}
	}
}

// ends: when the faults are over, every invoice comes to a final status and nothing is
// left to do.
func (c *checker) ends() {
	for _, i := range c.Invoices {
		if !final(i.Status) {
			c.fail("every invoice comes to an end", i.ExternalID, "it is %s (%s)", i.Status, i.ENCF)
		}
	}
	for _, d := range c.Jobs {
		c.fail("no work is left", c.byDoc[d].ExternalID, "a job of document %s is left", d)
	}
	for _, d := range c.Deliveries {
		if d.State == "pending" {
			c.fail("no work is left", d.EventID, "its delivery is pending")
		}
	}
	answered := map[string]bool{}
	for _, x := range c.Creations {
		if x.Outcome == Created || x.Outcome == Replayed {
			answered[x.Key] = true
		}
	}
	for _, x := range c.Creations {
		if x.Repeats && !answered[x.Key] {
			c.fail("every client gets an answer", x.ExternalID, "the last answer to the key %s is %q", x.Key, x.Outcome)
			answered[x.Key] = true
		}
	}
}

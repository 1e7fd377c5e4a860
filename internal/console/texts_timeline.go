package console

import "github.com/fiscalhub/fiscalhub/internal/lang"

// timelineTexts are the words for what happened to a document, and why.
func timelineTexts() lang.Texts {
	return lang.Texts{
		"timeline.created":         lang.Text("Request received", "Solicitud recibida"),
		"timeline.status":          lang.Text("New status", "Nuevo estado"),
		"timeline.reissued":        lang.Text("An operator gave it a new number", "Un operador le dio una secuencia nueva"),
		"timeline.requeued":        lang.Text("An operator put it back to work", "Un operador lo puso de nuevo en trabajo"),
		"timeline.issued":          lang.Text("Number %s taken and document signed", "Secuencia %s asignada y comprobante firmado"),
		"timeline.signed_at":       lang.Text("Signed", "Firmado"),
		"timeline.code":            lang.Text("Security code", "Código de seguridad"),
		"timeline.attempt":         lang.Text("Attempt %d to send it to the authority", "Envío n.º %d a la DGII"),
		"timeline.attempt_deliver": lang.Text("Attempt %d to deliver it to the buyer", "Entrega n.º %d al comprador"),
		"timeline.conclusive":      lang.Text("Answered", "Hubo respuesta"),
		"timeline.not_received":    lang.Text("Not received: it will be sent again", "No llegó: se enviará de nuevo"),
		"timeline.inconclusive":    lang.Text("No clear answer: it may have arrived", "Sin respuesta clara: pudo haber llegado"),
		"timeline.open":            lang.Text("Open", "En curso"),
		"timeline.by":              lang.Text("By", "Por"),
		"timeline.signer":          lang.Text("Signed by", "Firmado por"),
		"timeline.number":          lang.Text("Attempt", "Envío"),
		"timeline.unconfirmed":     lang.Text("Commercial response of an unconfirmed signer", "Respuesta comercial de un firmante no confirmado"),
		"timeline.difference":      lang.Text("The authority shows something different", "La DGII muestra algo distinto"),
		"timeline.now":             lang.Text("under way now", "en curso ahora"),
		"timeline.when_answers":    lang.Text("when the authority answers", "cuando la DGII responda"),

		"stage.issue":     lang.Text("Take a number and sign", "Tomar la secuencia y firmar"),
		"stage.submit":    lang.Text("Send it to the authority", "Enviar a la DGII"),
		"stage.poll":      lang.Text("Ask the authority for the verdict", "Preguntar el veredicto a la DGII"),
		"stage.reconcile": lang.Text("Ask the authority whether it arrived", "Averiguar con la DGII si llegó"),
		"stage.deliver":   lang.Text("Deliver it to the buyer", "Entregar al comprador"),
		"stage.scenario":  lang.Text("Next step of the test scenario", "Siguiente paso del escenario de prueba"),

		"evidence.track":           lang.Text("The authority received it and gave a track id", "La DGII recibió el envío y dio un trackId"),
		"evidence.track_found":     lang.Text("A look-up by number showed a track id", "Una consulta por número mostró un trackId"),
		"evidence.verdict":         lang.Text("Verdict of the authority: %s", "Veredicto de la DGII: %s"),
		"evidence.state_ours":      lang.Text("Look-up by number: the authority has this document (%s)", "Consulta por número: la DGII tiene este comprobante (%s)"),
		"evidence.state_foreign":   lang.Text("Look-up by number: the authority has ANOTHER document under this number (%s)", "Consulta por número: la DGII tiene OTRO comprobante con esta secuencia (%s)"),
		"evidence.state_unclear":   lang.Text("Look-up by number without enough data (%s)", "Consulta por número sin datos suficientes (%s)"),
		"evidence.absent":          lang.Text("The authority answered that it does not have the document", "La DGII respondió que no tiene el comprobante"),
		"evidence.lost":            lang.Text("The authority no longer knows the track id", "La DGII ya no conoce el trackId"),
		"evidence.inconclusive":    lang.Text("An attempt had no clear answer: it may have arrived", "Un envío quedó sin respuesta clara: pudo haber llegado"),
		"evidence.settled":         lang.Text("A doubtful attempt was explained", "Quedó aclarado un envío dudoso"),
		"evidence.no_other":        lang.Text("The authority has no other submission under this number", "La DGII no tiene otro envío con esta secuencia"),
		"evidence.no_look_up":      lang.Text("The authority offers no look-up by number in this environment", "La DGII no ofrece consultas por número en este ambiente"),
		"evidence.operator":        lang.Text("Decision of an operator: %s", "Decisión de un operador: %s"),
		"evidence.note":            lang.Text("Note of an operator", "Nota de un operador"),
		"evidence.receipt":         lang.Text("The buyer acknowledged receipt", "El comprador acusó recibo"),
		"evidence.delivery_failed": lang.Text("It could not be delivered to the buyer", "No se pudo entregar al comprador"),
		"evidence.commercial":      lang.Text("Commercial response of the buyer: %s", "Respuesta comercial del comprador: %s"),

		"verdict.accepted":             lang.Text("accepted", "aceptado"),
		"verdict.accepted_conditional": lang.Text("accepted conditionally", "aceptado condicional"),
		"verdict.rejected":             lang.Text("rejected", "rechazado"),
		"verdict.processing":           lang.Text("in process", "en proceso"),
		"verdict.not_found":            lang.Text("not found", "no encontrado"),
	}
}

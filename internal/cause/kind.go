package cause

import (
	"slices"
	"strings"

	"github.com/fiscalhub/fiscalhub/internal/lang"
)

// A Kind is what a cause says, with verbs for its arguments.
type Kind struct {
	code   string // as it is stored; it never changes
	text   lang.Message
	do     lang.Message // what a person does; empty: nothing, or the page around it says it
	person bool         // nothing goes on before a person has decided
}

// The kinds of causes. A comment names the arguments, and in brackets a detail that may
// follow.
var (
	setClock = lang.Text("set the clock of this machine", "corrija la hora de este servidor")

	Text = Kind{code: "text", text: lang.Text("%s", "%s")} // text

	// Of the history of an invoice.
	Registered          = Kind{code: "registered", text: lang.Text("registered", "registrado")}
	Sandbox             = Kind{code: "sandbox", text: lang.Text("validated by the sandbox; a synthetic result", "validado en pruebas; el resultado es simulado")}
	SandboxScenario     = Kind{code: "sandbox_scenario", text: lang.Text("registered by the sandbox; scenario %s", "registrado en pruebas; escenario %s")} // scenario
	Scenario            = Kind{code: "scenario", text: lang.Text("scenario %s", "escenario de prueba %s")}                                                 // scenario
	Replayed            = Kind{code: "replayed", text: lang.Text("The same request came again and got the stored answer.", "La misma solicitud llegó otra vez y recibió la respuesta guardada.")}
	KeyMismatch         = Kind{code: "key_mismatch", text: lang.Text("The key was used again with another request, which was refused.", "La clave se usó otra vez con otra solicitud, que fue rechazada.")}
	ExternalIDConflict  = Kind{code: "external_id_conflict", text: lang.Text("Another request came with the same external id and was refused.", "Llegó otra solicitud con el mismo external_id y fue rechazada.")}
	Verdict             = Kind{code: "verdict", text: lang.Text("the authority's verdict", "veredicto de la DGII")} // [the authority's words]
	Track               = Kind{code: "track", text: lang.Text("the authority gave a track id", "la DGII dio un trackId")}
	Processing          = Kind{code: "processing", text: lang.Text("the authority is processing the document", "la DGII está procesando el comprobante")}
	OutcomeUnknown      = Kind{code: "outcome_unknown", text: lang.Text("the document may have reached the authority; the service asks", "pudo haber llegado a la DGII; el servicio pregunta")}
	Format              = Kind{code: "format", text: lang.Text("the document does not fit the authority's format; no number was taken", "no cumple el formato de la DGII; no se gastó secuencia")}
	Rules               = Kind{code: "rules", text: lang.Text("the rules of this release refuse the request; no number was taken", "las reglas de esta versión no aceptan la solicitud; no se gastó secuencia")}
	Absent              = Kind{code: "absent", text: lang.Text("the authority does not have the document; the same bytes are sent again", "la DGII no lo tiene; se envían los mismos bytes otra vez")}
	OperatorResends     = Kind{code: "operator_resends", text: lang.Text("an operator sends it again: %s", "un operador lo envía otra vez: %s")}                                                                                                     // reason
	OperatorDecided     = Kind{code: "operator_decided", text: lang.Text("decided by an operator: %s", "decidido por un operador: %s")}                                                                                                              // reason
	NumberReplaced      = Kind{code: "number_replaced", text: lang.Text("number replaced: %s: %s", "se sustituyó la secuencia %s: %s")}                                                                                                              // e-NCF, reason
	NumberForeign       = Kind{code: "number_foreign", text: lang.Text("The authority holds another document under our number. The number range is fenced.", "La DGII tiene otro comprobante con nuestra secuencia. El rango quedó bloqueado.")}     // [the authority's words]
	NumberUsed          = Kind{code: "number_used", text: lang.Text("The authority says that the number was used, and no attempt of ours can have used it.", "La DGII dice que la secuencia ya fue utilizada, y ningún envío nuestro pudo usarla.")} // [the authority's words]
	ResponseConfirmed   = Kind{code: "response_confirmed", text: lang.Text("%s (signer %s, confirmed)", "%s (firmante %s, confirmado)")}
	ResponseUnconfirmed = Kind{code: "response_unconfirmed", text: lang.Text("%s (signer %s, not confirmed)", "%s (firmante %s, sin confirmar)")}                                                // message, signer
	ResponseContradicts = Kind{code: "response_contradicts", text: lang.Text("%s (signer %s, confirmed; the first response stands)", "%s (firmante %s, confirmado; vale la primera respuesta)")} // message, signer

	// Of the notes of operators in the evidence.
	NoteResent   = Kind{code: "note_resent", text: lang.Text("sent again: %s", "enviado de nuevo: %s")}           // reason
	NoteRequeued = Kind{code: "note_requeued", text: lang.Text("requeued: %s", "puesto de nuevo en trabajo: %s")} // reason

	// Of deliveries that have failed for good.
	BuyerRefused     = Kind{code: "buyer_refused", text: lang.Text("the buyer refused it, reason %s", "el comprador lo rechazó, motivo %s")} // code
	BuyerUnreachable = Kind{code: "buyer_unreachable", text: lang.Text("the buyer could not be reached", "no se pudo contactar al comprador")}
	BuyerAddress     = Kind{code: "buyer_address", text: lang.Text("the buyer's address in the authority's directory is not a public one", "la dirección del comprador en el directorio de la DGII no es pública")}

	// Of attempts and jobs.
	LostAttempt        = Kind{code: "lost_attempt", text: lang.Text("the database may have lost the record of this attempt", "la base de datos pudo perder el registro de este envío")}
	WorkerEnded        = Kind{code: "worker_ended", text: lang.Text("the worker ended before the answer", "el proceso terminó antes de recibir la respuesta")}
	Altered            = Kind{code: "altered", text: lang.Text("the stored bytes are not those that were signed", "los bytes guardados no son los que se firmaron"), person: true}
	SentOtherBytes     = Kind{code: "sent_other_bytes", text: lang.Text("other bytes were sent before", "antes se enviaron otros bytes"), person: true}
	RangeEnded         = Kind{code: "range_ended", text: lang.Text("the number range ended on %s, and the authority would reject the number", "la secuencia venció el %s, y la DGII la rechazaría"), person: true, do: lang.Text("`fiscalhub work reissue` gives the document a new one, `fiscalhub work resend` sends it all the same", "`fiscalhub work reissue` le da una secuencia nueva, `fiscalhub work resend` lo envía de todos modos")} // day
	RangeExhausted     = Kind{code: "range_exhausted", text: lang.Text("the number range is exhausted", "la secuencia de e-NCF se agotó")}
	LowerNumbersFirst  = Kind{code: "lower_numbers_first", text: lang.Text("documents with lower numbers are sent first", "primero se envían los comprobantes con secuencias menores")}
	NoLookUp           = Kind{code: "no_look_up", text: lang.Text("no look-up by number exists in this environment", "en este ambiente no se puede consultar por número")}
	ClockUnconfirmed   = Kind{code: "clock_unconfirmed", text: lang.Text("the authority has not confirmed the clock of this machine yet", "la DGII todavía no confirmó la hora de este servidor")} // [why]
	ClockSet           = Kind{code: "clock_set", text: lang.Text("the clock of this machine was set, and the authority has not confirmed it yet", "se cambió la hora de este servidor, y la DGII todavía no la confirmó")}
	ClockAuthority     = Kind{code: "clock_authority", text: lang.Text("the authority's clock is %s ahead of ours", "el reloj de la DGII adelanta %s al nuestro"), do: setClock}                                                                  // how far ahead
	ClockNode          = Kind{code: "clock_node", text: lang.Text("the clock of this node is %s ahead of the database's", "el reloj de este servidor adelanta %s al de la base de datos"), do: setClock}                                          // how far ahead
	SignedInFuture     = Kind{code: "signed_in_future", text: lang.Text("by the authority's clock the document is signed in the future: it is sent in %s", "según el reloj de la DGII el comprobante está firmado en el futuro: se envía en %s")} // wait
	NotReady           = Kind{code: "not_ready", text: lang.Text("%s: %s", "%[2]s (%[1]s)")}                                                                                                                                                      // code, message
	NoNumbers          = Kind{code: "no_numbers", text: lang.Text("%s: there are no usable numbers of this type", "%s: no hay secuencias utilizables de este tipo")}                                                                              // code
	TaxpayerData       = Kind{code: "taxpayer_data", text: lang.Text("taxpayer: %s", "contribuyente: %s")}                                                                                                                                        // message
	NoCertificate      = Kind{code: "no_certificate", text: lang.Text("the taxpayer has no certificate in this environment", "el contribuyente no tiene certificado en este ambiente")}
	CertificateExpired = Kind{code: "certificate_expired", text: lang.Text("the certificate has expired", "el certificado venció")}
	CertificateEarly   = Kind{code: "certificate_early", text: lang.Text("the certificate is not valid yet", "el certificado todavía no está vigente")}
	CertificateRevoked = Kind{code: "certificate_revoked", text: lang.Text("the certificate is revoked", "el certificado está revocado")}

	// Of differences between a document and what the authority shows: theirs, ours.
	DifferenceNotFound     = Kind{code: "difference_not_found", text: lang.Text("the tax authority does not have the document", "la DGII no tiene el documento")} // without arguments
	DifferenceState        = Kind{code: "difference_state", text: lang.Text("the tax authority shows the state %s", "la DGII muestra el estado %s")}
	DifferenceSecurityCode = Kind{code: "difference_security_code", text: lang.Text("the tax authority shows the security code %s instead of %s", "la DGII muestra el código de seguridad %s en lugar de %s")}
	DifferenceTotal        = Kind{code: "difference_total", text: lang.Text("the tax authority shows the total %s instead of %s", "la DGII muestra el total %s en lugar de %s")}
	DifferenceBuyer        = Kind{code: "difference_buyer", text: lang.Text("the tax authority shows the buyer %s instead of %s", "la DGII muestra el comprador %s en lugar de %s")}

	// Of calls: service [details].
	CallNotReceived  = Kind{code: "call_not_received", text: lang.Text("the tax authority has not received the document (%s)", "la DGII no recibió el comprobante (%s)")}
	CallInconclusive = Kind{code: "call_inconclusive", text: lang.Text("the tax authority may have received the document (%s)", "la DGII pudo haber recibido el comprobante (%s)")}
	CallAbsent       = Kind{code: "call_absent", text: lang.Text("the tax authority does not offer this service in this environment (%s)", "la DGII no ofrece este servicio en este ambiente (%s)")}
	CallNotDelegated = Kind{code: "call_not_delegated", text: lang.Text("the taxpayer has not delegated the signer at the tax authority (%s)", "el contribuyente no ha delegado al firmante en la Oficina Virtual de la DGII (%s)")}
	CallUnavailable  = Kind{code: "call_unavailable", text: lang.Text("the tax authority does not answer (%s)", "la DGII no responde (%s)")}
	CallReceiver     = Kind{code: "call_receiver", text: lang.Text("the buyer's receiver did not acknowledge the document", "el receptor del comprador no confirmó el comprobante")}
)

// kinds returns all kinds.
func kinds() []Kind {
	return []Kind{
		Text, Registered, Sandbox, SandboxScenario, Scenario, Replayed, KeyMismatch, ExternalIDConflict, Verdict, Track,
		Processing, OutcomeUnknown, Format, Rules, Absent, OperatorResends, OperatorDecided, NumberReplaced, NumberForeign,
		NumberUsed, ResponseConfirmed, ResponseUnconfirmed, ResponseContradicts, NoteResent, NoteRequeued, BuyerRefused, BuyerUnreachable, BuyerAddress, LostAttempt,
		WorkerEnded, Altered, SentOtherBytes, RangeEnded, RangeExhausted, LowerNumbersFirst, NoLookUp, ClockUnconfirmed,
		ClockSet, ClockAuthority, ClockNode, SignedInFuture, NotReady, NoNumbers, TaxpayerData, NoCertificate,
		CertificateExpired, CertificateEarly, CertificateRevoked, DifferenceNotFound, DifferenceState, DifferenceSecurityCode,
		DifferenceTotal, DifferenceBuyer, CallNotReceived, CallInconclusive, CallAbsent, CallNotDelegated, CallUnavailable,
		CallReceiver,
	}
}

// find returns the kind with a code. A later release has kinds that this one does not know:
// they have no text but their code.
func find(code string) Kind {
	all := kinds()
	i := slices.IndexFunc(all, func(k Kind) bool { return k.code == code })
	if i < 0 {
		return Kind{code: code, text: lang.Literal(code)}
	}
	return all[i]
}

// verbs returns how many arguments the text has.
func (k Kind) verbs() int { return strings.Count(k.text.String(), "%s") }

// separator returns what stands between the text and a detail.
func (k Kind) separator() string {
	if strings.HasSuffix(k.text.String(), ".") {
		return " "
	}
	return ": "
}

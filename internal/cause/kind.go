package cause

import (
	"slices"
	"strings"
	"sync"

	"github.com/fiscalhub/fiscalhub/internal/lang"
)

// The kinds of causes. A comment names the arguments; the last one in brackets is a detail.
const (
	Text Kind = "text" // text

	// Of the history of an invoice.
	Registered          Kind = "registered"
	Sandbox             Kind = "sandbox"
	SandboxScenario     Kind = "sandbox_scenario" // scenario
	Scenario            Kind = "scenario"         // scenario
	Replayed            Kind = "replayed"
	KeyMismatch         Kind = "key_mismatch"
	ExternalIDConflict  Kind = "external_id_conflict"
	Verdict             Kind = "verdict" // [the authority's words]
	Track               Kind = "track"
	Processing          Kind = "processing"
	OutcomeUnknown      Kind = "outcome_unknown"
	Format              Kind = "format"
	Rules               Kind = "rules"
	Absent              Kind = "absent"
	OperatorResends     Kind = "operator_resends" // reason
	OperatorDecided     Kind = "operator_decided" // reason
	NumberReplaced      Kind = "number_replaced"  // e-NCF, reason
	NumberForeign       Kind = "number_foreign"   // [the authority's words]
	NumberUsed          Kind = "number_used"      // [the authority's words]
	ResponseConfirmed   Kind = "response_confirmed"
	ResponseUnconfirmed Kind = "response_unconfirmed" // message, signer
	ResponseContradicts Kind = "response_contradicts" // message, signer

	// Of the notes of operators in the evidence.
	NoteResent   Kind = "note_resent"   // reason
	NoteRequeued Kind = "note_requeued" // reason

	// Of attempts and jobs.
	LostAttempt        Kind = "lost_attempt"
	WorkerEnded        Kind = "worker_ended"
	Altered            Kind = "altered"
	SentOtherBytes     Kind = "sent_other_bytes"
	RangeEnded         Kind = "range_ended" // day
	RangeExhausted     Kind = "range_exhausted"
	LowerNumbersFirst  Kind = "lower_numbers_first"
	NoLookUp           Kind = "no_look_up"
	ClockUnconfirmed   Kind = "clock_unconfirmed" // [why]
	ClockSet           Kind = "clock_set"
	ClockAuthority     Kind = "clock_authority"  // how far ahead
	ClockNode          Kind = "clock_node"       // how far ahead
	SignedInFuture     Kind = "signed_in_future" // wait
	NotReady           Kind = "not_ready"        // code, message
	NoNumbers          Kind = "no_numbers"       // code
	TaxpayerData       Kind = "taxpayer_data"    // message
	NoCertificate      Kind = "no_certificate"
	CertificateExpired Kind = "certificate_expired"
	CertificateEarly   Kind = "certificate_early"
	CertificateRevoked Kind = "certificate_revoked"

	// Of differences between a document and what the authority shows: theirs, ours.
	DifferenceNotFound     Kind = "difference_not_found" // without arguments
	DifferenceState        Kind = "difference_state"     // theirs
	DifferenceSecurityCode Kind = "difference_security_code"
	DifferenceTotal        Kind = "difference_total"
	DifferenceBuyer        Kind = "difference_buyer"

	// Of calls. The first argument is the service, the last one [details].
	CallNotReceived  Kind = "call_not_received"
	CallInconclusive Kind = "call_inconclusive"
	CallAbsent       Kind = "call_absent"
	CallNotDelegated Kind = "call_not_delegated"
	CallUnavailable  Kind = "call_unavailable"
	CallReceiver     Kind = "call_receiver" // without a service
)

// A kindRow is what is known of a kind.
type kindRow struct {
	kind   Kind
	text   lang.Message
	do     lang.Message // what a person does; empty: nothing, or the page around it says it
	person bool         // nothing goes on before a person has decided
}

// verbs returns how many arguments the text has.
func (r kindRow) verbs() int { return strings.Count(r.text.String(), "%s") }

// separator returns what stands between the text and a detail.
func (r kindRow) separator() string {
	if strings.HasSuffix(r.text.String(), ".") {
		return " "
	}
	return ": "
}

// find returns the row of a kind. It is empty when the kind is not known.
func find(kind Kind) kindRow {
	rows := table()
	i := slices.IndexFunc(rows, func(r kindRow) bool { return r.kind == kind })
	if i < 0 {
		return kindRow{}
	}
	return rows[i]
}

var table = sync.OnceValue(func() []kindRow {
	setClock := lang.Text("set the clock of this machine", "corrija la hora de este servidor")
	return []kindRow{
		{kind: Text, text: lang.Text("%s", "%s")},

		{kind: Registered, text: lang.Text("registered", "registrado")},
		{kind: Sandbox, text: lang.Text("validated by the sandbox; a synthetic result", "validado en pruebas; el resultado es simulado")},
		{kind: SandboxScenario, text: lang.Text("registered by the sandbox; scenario %s", "registrado en pruebas; escenario %s")},
		{kind: Scenario, text: lang.Text("scenario %s", "escenario de prueba %s")},
		{kind: Replayed, text: lang.Text("The same request came again and got the stored answer.", "La misma solicitud llegó otra vez y recibió la respuesta guardada.")},
		{kind: KeyMismatch, text: lang.Text("The key was used again with another request, which was refused.", "La clave se usó otra vez con otra solicitud, que fue rechazada.")},
		{kind: ExternalIDConflict, text: lang.Text("Another request came with the same external id and was refused.", "Llegó otra solicitud con el mismo external_id y fue rechazada.")},
		{kind: Verdict, text: lang.Text("the authority's verdict", "veredicto de la DGII")},
		{kind: Track, text: lang.Text("the authority gave a track id", "la DGII dio un trackId")},
		{kind: Processing, text: lang.Text("the authority is processing the document", "la DGII está procesando el comprobante")},
		{kind: OutcomeUnknown, text: lang.Text("the document may have reached the authority; the service asks", "pudo haber llegado a la DGII; el servicio pregunta")},
		{kind: Format, text: lang.Text("the document does not fit the authority's format; no number was taken", "no cumple el formato de la DGII; no se gastó secuencia")},
		{kind: Rules, text: lang.Text("the rules of this release refuse the request; no number was taken", "las reglas de esta versión no aceptan la solicitud; no se gastó secuencia")},
		{kind: Absent, text: lang.Text("the authority does not have the document; the same bytes are sent again", "la DGII no lo tiene; se envían los mismos bytes otra vez")},
		{kind: OperatorResends, text: lang.Text("an operator sends it again: %s", "un operador lo envía otra vez: %s")},
		{kind: OperatorDecided, text: lang.Text("decided by an operator: %s", "decidido por un operador: %s")},
		{kind: NumberReplaced, text: lang.Text("number replaced: %s: %s", "se sustituyó la secuencia %s: %s")},
		{kind: NumberForeign, text: lang.Text("The authority holds another document under our number. The number range is fenced.", "La DGII tiene otro comprobante con nuestra secuencia. El rango quedó bloqueado.")},
		{kind: NumberUsed, text: lang.Text("The authority says that the number was used, and no attempt of ours can have used it.", "La DGII dice que la secuencia ya fue utilizada, y ningún envío nuestro pudo usarla.")},
		{kind: ResponseConfirmed, text: lang.Text("%s (signer %s, confirmed)", "%s (firmante %s, confirmado)")},
		{kind: ResponseUnconfirmed, text: lang.Text("%s (signer %s, not confirmed)", "%s (firmante %s, sin confirmar)")},
		{kind: ResponseContradicts, text: lang.Text("%s (signer %s, confirmed; the first response stands)", "%s (firmante %s, confirmado; vale la primera respuesta)")},

		{kind: NoteResent, text: lang.Text("sent again: %s", "enviado de nuevo: %s")},
		{kind: NoteRequeued, text: lang.Text("requeued: %s", "puesto de nuevo en trabajo: %s")},

		{kind: LostAttempt, text: lang.Text("the database may have lost the record of this attempt", "la base de datos pudo perder el registro de este envío")},
		{kind: WorkerEnded, text: lang.Text("the worker ended before the answer", "el proceso terminó antes de recibir la respuesta")},
		{kind: Altered, person: true, text: lang.Text("the stored bytes are not those that were signed", "los bytes guardados no son los que se firmaron")},
		{kind: SentOtherBytes, person: true, text: lang.Text("other bytes were sent before", "antes se enviaron otros bytes")},
		{
			kind: RangeEnded, person: true,
			text: lang.Text("the number range ended on %s, and the authority would reject the number", "la secuencia venció el %s, y la DGII la rechazaría"),
			do: lang.Text("`fiscalhub work reissue` gives the document a new one, `fiscalhub work resend` sends it all the same",
				"`fiscalhub work reissue` le da una secuencia nueva, `fiscalhub work resend` lo envía de todos modos"),
		},
		{kind: RangeExhausted, text: lang.Text("the number range is exhausted", "la secuencia de e-NCF se agotó")},
		{kind: LowerNumbersFirst, text: lang.Text("documents with lower numbers are sent first", "primero se envían los comprobantes con secuencias menores")},
		{kind: NoLookUp, text: lang.Text("no look-up by number exists in this environment", "en este ambiente no se puede consultar por número")},
		{kind: ClockUnconfirmed, text: lang.Text("the authority has not confirmed the clock of this machine yet", "la DGII todavía no confirmó la hora de este servidor")},
		{kind: ClockSet, text: lang.Text("the clock of this machine was set, and the authority has not confirmed it yet", "se cambió la hora de este servidor, y la DGII todavía no la confirmó")},
		{kind: ClockAuthority, text: lang.Text("the authority's clock is %s ahead of ours", "el reloj de la DGII adelanta %s al nuestro"), do: setClock},
		{kind: ClockNode, text: lang.Text("the clock of this node is %s ahead of the database's", "el reloj de este servidor adelanta %s al de la base de datos"), do: setClock},
		{kind: SignedInFuture, text: lang.Text("by the authority's clock the document is signed in the future: it is sent in %s", "según el reloj de la DGII el comprobante está firmado en el futuro: se envía en %s")},
		{kind: NotReady, text: lang.Text("%s: %s", "%[2]s (%[1]s)")},
		{kind: NoNumbers, text: lang.Text("%s: there are no usable numbers of this type", "%s: no hay secuencias utilizables de este tipo")},
		{kind: TaxpayerData, text: lang.Text("taxpayer: %s", "contribuyente: %s")},
		{kind: NoCertificate, text: lang.Text("the taxpayer has no certificate in this environment", "el contribuyente no tiene certificado en este ambiente")},
		{kind: CertificateExpired, text: lang.Text("the certificate has expired", "el certificado venció")},
		{kind: CertificateEarly, text: lang.Text("the certificate is not valid yet", "el certificado todavía no está vigente")},
		{kind: CertificateRevoked, text: lang.Text("the certificate is revoked", "el certificado está revocado")},

		{kind: DifferenceNotFound, text: lang.Text("the tax authority does not have the document", "la DGII no tiene el documento")},
		{kind: DifferenceState, text: lang.Text("the tax authority shows the state %s", "la DGII muestra el estado %s")},
		{kind: DifferenceSecurityCode, text: lang.Text("the tax authority shows the security code %s instead of %s", "la DGII muestra el código de seguridad %s en lugar de %s")},
		{kind: DifferenceTotal, text: lang.Text("the tax authority shows the total %s instead of %s", "la DGII muestra el total %s en lugar de %s")},
		{kind: DifferenceBuyer, text: lang.Text("the tax authority shows the buyer %s instead of %s", "la DGII muestra el comprador %s en lugar de %s")},

		{kind: CallNotReceived, text: lang.Text("the tax authority has not received the document (%s)", "la DGII no recibió el comprobante (%s)")},
		{kind: CallInconclusive, text: lang.Text("the tax authority may have received the document (%s)", "la DGII pudo haber recibido el comprobante (%s)")},
		{kind: CallAbsent, text: lang.Text("the tax authority does not offer this service in this environment (%s)", "la DGII no ofrece este servicio en este ambiente (%s)")},
		{kind: CallNotDelegated, text: lang.Text("the taxpayer has not delegated the signer at the tax authority (%s)", "el contribuyente no ha delegado al firmante en la Oficina Virtual de la DGII (%s)")},
		{kind: CallUnavailable, text: lang.Text("the tax authority does not answer (%s)", "la DGII no responde (%s)")},
		{kind: CallReceiver, text: lang.Text("the buyer's receiver did not acknowledge the document", "el receptor del comprador no confirmó el comprobante")},
	}
})

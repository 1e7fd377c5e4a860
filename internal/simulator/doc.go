// Package simulator simulates the tax authority for tests and trials: its three
// hosts, the receivers of other taxpayers, and a control API that makes them
// misbehave.
//
// It is independent of the code that it tests. It imports no package of the
// product but xmlsig, and has its own time zone, limits, schemas and arithmetic:
// with shared code, an error would be on both sides and no test would find it.
//
// A Simulator has one http.Handler for the simulated hosts and another for its
// control API:
//
//	/ecf-host/{amb}/…    https://ecf.dgii.gov.do
//	/fc-host/{amb}/…     https://fc.dgii.gov.do
//	/status-host/…       https://statusecf.dgii.gov.do
//	/peer/{rnc}/fe/…     the receiver of a taxpayer
//	/_sim/v1/…           the control API
//
// {amb} is testecf, certecf or ecf. The environments share the registry of
// taxpayers and nothing else. A request with one of the authority's own host names
// needs no path prefix.
//
// Everything can be repeated. With the same seed, the same clock and the same order
// of requests for each document, the trackIds, delays and verdicts are the same.
// There are no timers: the verdict is decided when a document arrives, and shown
// when its delay has passed on the clock. Only keys and certificates differ from
// run to run.
//
// # Faults
//
// A Rule has a Match, an Action and a Count. The first rule that matches a call
// is applied. When a rule names no service, its fault applies to the services
// where it makes sense.
//
//	F01   waits for Delay before the service answers
//	F02   stores (unless Store is false), then: drop, hang
//	F03   drops the connection before it reads the body; a rule that matches a
//	      number has read the start of the body, where the file name is
//	F04   reads half of the body and drops the connection
//	F05   answers Status (503), not stored unless Store is true
//	F06   answers 200 with: html, truncated, empty-object, no-trackid, content-type
//	F07   answers 400 as a gateway does: html, empty
//	F08   answers 400 as: json-string, string, mensajes, mensaje, model-state
//	F09   answers 401; for the token service: expires-after (After calls), past-expiry
//	F10   answers 429 with Retry-After of Delay
//	F11   in process for Delay, or without an end
//	F12   not found for Delay, or without an end
//	F13   two trackIds for one post; it returns the: first, second; the first has the
//	      Verdict of the action, if there is one
//	F14   returns the trackId of the previous document
//	F15   a verdict with: other-rnc, other-encf, contradiction, unknown-code; it is the
//	      Verdict of the action, if there is one; from the look-up by number: other-rnc,
//	      other-code, other-total, other-buyer
//	F16   an acceptance becomes a rejection after After look-ups
//	F17   the Verdict of the action
//	F18   503 from: lookups (by number), result
//	F19   200 messages of 10 kB
//	F20   the clock of the server is off by Delay
//	F21   maintenance: 503, and the status service reports it
//	F22   a response byte by byte, with Delay between the bytes
//	F23   a fault of the listener: see TLSConfig
//	F24   a directory with: null, empty, swap, dead, private, http
//	peer  a receiver that answers: arecf-1 to arecf-4, unsigned, other-encf,
//	      other-signer, 500, timeout-after-store, requires-token, html, indented
//
// With Config.MagicNumbers the last digits of an e-NCF select a fault: 901
// rejected with a reusable number, 902 rejected, 903 conditional, 904 F11, 905 F02
// once, 906 F05 once, 907 F12.
//
// # What it does not simulate
//
// Rate limits, revocation of certificates, the XML form of answers, the Swagger
// pages, and the authority's catalogue of messages, which is not published: codes
// from 90000 are the simulator's own. Types other than 31 and 32 are checked only
// for the structure that all types share. A verdict does not depend on what happens
// between arrival and validation. All certificates of a process have the same key,
// because generating keys is slow.
package simulator

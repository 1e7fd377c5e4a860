// Package simulator is the tax authority for tests and trials without it: its
// three hosts, a population of receivers, and a control API that makes them
// misbehave on purpose. It shares no code with the client that it judges, but
// for the XML signatures.
//
// A Simulator is an http.Handler for what it emulates and another for its
// control:
//
//	/ecf-host/{amb}/…    https://ecf.dgii.gov.do
//	/fc-host/{amb}/…     https://fc.dgii.gov.do
//	/status-host/…       https://statusecf.dgii.gov.do
//	/peer/{rnc}/fe/…     the receiver of a taxpayer
//	/_sim/v1/…           the control API, a handler of its own
//
// {amb} is testecf, certecf or ecf. They share the registry of taxpayers and
// nothing else. Calls under the authority's own host names need no mount.
//
// Given the seed, the clock and the order of the requests for each document,
// everything is the same again: trackIds, delays, verdicts. There are no timers:
// a verdict is decided when a document arrives and shown once its delay has
// passed on the clock. Only keys and certificates differ from run to run.
//
// # Faults
//
// A Rule is a Match, an Action and a Count. The first rule that matches a call
// fires. Where a rule names no service, its fault applies where it makes sense.
//
//	F01   waits Delay before the service answers
//	F02   stores (unless Store is false), then: drop, hang
//	F03   drops before it reads the body; a rule that asks for a number has read
//	      the head of the body, where the file name is
//	F04   reads half of the body and drops
//	F05   answers Status (503), not stored unless Store is true
//	F06   answers 200 with: html, truncated, empty-object, no-trackid, content-type
//	F07   answers 400 as a gateway does: html, empty
//	F08   answers 400 as: json-string, string, mensajes, mensaje, model-state
//	F09   401; of the token service: expires-after (After calls), past-expiry
//	F10   429 with Retry-After of Delay
//	F11   in process for Delay, or for ever
//	F12   not found for Delay, or for ever
//	F13   two trackIds for one post, of which it tells the: first, second
//	F14   tells the trackId of the document before
//	F15   a verdict of: other-rnc, other-encf, contradiction, unknown-code
//	F16   an acceptance becomes a rejection after After questions
//	F17   the Verdict that it names
//	F18   503 from: lookups (by number), result
//	F19   200 messages of 10 kB
//	F20   the clock of the server is off by Delay
//	F21   maintenance: 503, and the status service says so
//	F22   an answer byte by byte, Delay apart
//	F23   of the listener: see TLSConfig
//	F24   a directory of: null, empty, swap, dead, private, http
//	peer  a receiver that answers: arecf-1 to arecf-4, unsigned, other-encf,
//	      other-signer, 500, timeout-after-store, requires-token, html, indented
//
// With Config.MagicNumbers the last digits of an e-NCF are faults: 901 rejected
// and free, 902 rejected, 903 conditional, 904 F11, 905 F02 once, 906 F05 once,
// 907 F12.
//
// # What it does not imitate
//
// Limits of rate, revocation of certificates, the XML form of answers, the
// Swagger pages, and DGII's catalogue of messages, which is not published: codes
// from 90000 are the simulator's own. The structure of types other than 31 and
// 32 is judged by what all types share. A verdict does not change with what
// happens between arrival and validation. All certificates of a process have one
// key, since keys take long to make.
package simulator

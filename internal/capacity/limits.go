package capacity

import "time"

// Limits are the limits of a Capacity.
type Limits struct {
	Connections        int // open connections
	AddressConnections int // open connections of one address

	Slots             int // requests of tenants that execute at the same time
	TaxpayerSlots     int // of one taxpayer
	CredentialSlots   int // of one credential
	Waiting           int // requests that wait for a slot
	CredentialWaiting int // of one credential
	StrangerSlots     int // requests without a known credential that execute at the same time
	AddressSlots      int // of one address

	SlotPatience time.Duration // how long a request waits for a slot

	// Bodies of tenants, and of strangers, that are read at the same time; a taxpayer or a
	// credential may send a half. A connection of HTTP/2 can send many.
	Reads        int
	AddressReads int // of one address, of strangers

	TenantBytes   int64 // of bodies of tenants in memory; a taxpayer may hold a half, a credential a quarter
	StrangerBytes int64 // of bodies of strangers in memory; an address may hold a half
	AnswerBytes   int64 // of answers that tenants are reading; shares as for bodies

	Heavy         int           // large bodies of tenants that are processed at the same time
	StrangerHeavy int           // large bodies of strangers that are processed at the same time
	Patience      time.Duration // how long a large body waits for memory, and to be processed

	CredentialWaits int // requests of one credential that wait for an event or a verdict
	TaxpayerWaits   int // of one taxpayer
}

const (
	// A body up to firstPart bytes needs no memory of a budget, so that typical
	// requests never wait for it.
	firstPart = 16 << 10
	// A body up to smallBody bytes takes so little time that it is processed at once.
	smallBody = 64 << 10
	// An answer up to smallAnswer bytes fits into the buffer of a socket.
	smallAnswer = 32 << 10

	minBytes = 16 << 20 // of a budget; room for one document of 8 MiB in a half
	maxBytes = 64 << 20
)

// DefaultLimits returns the limits of a process that may use that much memory and
// that many processors.
func DefaultLimits(memory int64, processors int) Limits {
	bytes := min(max(memory/16, minBytes), maxBytes)
	heavy := max(1, processors/2)
	return Limits{
		Connections: 4096, AddressConnections: 256,
		Slots: 256, TaxpayerSlots: 128, CredentialSlots: 64, Waiting: 512, CredentialWaiting: 256,
		StrangerSlots: 32, AddressSlots: 16, SlotPatience: time.Second,
		Reads: 4096, AddressReads: 512,
		TenantBytes: bytes, StrangerBytes: bytes, AnswerBytes: bytes,
		Heavy: heavy, StrangerHeavy: max(1, heavy/2), Patience: 10 * time.Second,
		CredentialWaits: 256, TaxpayerWaits: 1024,
	}
}

// Package capacity decides what a connection, an address, a credential and a
// taxpayer may hold of the service at one time: connections, bytes in memory, work
// in progress. All limits of this kind are here.
//
// Nothing scarce is held while the service waits for a client. A body is read
// before its request takes a slot, and the slot is given back before the answer is
// written. Requests that are authenticated (of tenants) and all others (of
// strangers) have pools of their own, so that no number of strangers takes anything
// away from a tenant.
package capacity

import "context"

// A Holder is the party on whose account a request holds something. A stranger has
// an address alone.
type Holder struct {
	Address    string // as AddressOf returns it
	Credential string
	Taxpayer   string
}

// stranger reports whether the holder is not authenticated.
func (h Holder) stranger() bool { return h.Credential == "" }

// A Capacity is the capacity of one process. All its listeners and handlers share
// it.
type Capacity struct {
	limits Limits

	connections *Pool
	tenants     group
	strangers   group
	answers     *Pool // bytes of answers that clients are reading
	waits       *Pool // requests that wait for an event or a verdict
}

// group is the capacity of the tenants or of the strangers.
type group struct {
	slots *Pool // requests that execute
	reads *Pool // bodies that are read
	bytes *Pool // of bodies in memory
	heavy *Pool // large bodies that are processed
}

// New returns a capacity with limits.
func New(l Limits) *Capacity {
	const fifo, newestFirst = false, true
	return &Capacity{
		limits:      l,
		connections: newPool(Service, int64(l.Connections), 0, newestFirst),
		tenants: group{
			slots: newPool(Service, int64(l.Slots), l.Waiting, newestFirst),
			reads: newPool(Service, int64(l.Reads), 0, fifo),
			bytes: newPool(Service, l.TenantBytes, l.Connections, fifo),
			heavy: newPool(Service, int64(l.Heavy), l.Connections, fifo),
		},
		strangers: group{
			slots: newPool(Strangers, int64(l.StrangerSlots), l.Waiting, newestFirst),
			reads: newPool(Strangers, int64(l.Reads), 0, fifo),
			bytes: newPool(Strangers, l.StrangerBytes, l.Connections, fifo),
			heavy: newPool(Strangers, int64(l.StrangerHeavy), l.Connections, fifo),
		},
		answers: newPool(Service, l.AnswerBytes, 0, fifo),
		waits:   newPool(Service, int64(l.Connections), 0, newestFirst),
	}
}

// group returns the pools of a holder.
func (c *Capacity) group(h Holder) *group {
	if h.stranger() {
		return &c.strangers
	}
	return &c.tenants
}

// shares returns the accounts of a holder, the widest first.
func (h Holder) shares(taxpayer, credential, address Share) []Share {
	if h.stranger() {
		address.Kind, address.Name = Address, h.Address
		return []Share{address}
	}
	taxpayer.Kind, taxpayer.Name = Taxpayer, h.Taxpayer
	credential.Kind, credential.Name = Credential, h.Credential
	return []Share{taxpayer, credential}
}

// TakeSlot takes a slot for a request that is complete in memory. It waits for one
// for a short time and fails with a *FullError then. The caller gives the slot back before it
// writes the answer.
func (c *Capacity) TakeSlot(ctx context.Context, h Holder) (*Hold, error) {
	l := &c.limits
	return c.group(h).slots.Acquire(ctx, 1, l.SlotPatience, h.shares(
		Share{Max: int64(l.TaxpayerSlots)},
		Share{Max: int64(l.CredentialSlots), MaxWaiting: l.CredentialWaiting},
		Share{Max: int64(l.AddressSlots), MaxWaiting: l.CredentialWaiting},
	)...)
}

// TakeLargeSlot takes the right to process a body: to parse it and to store what it says.
// For a small body it returns nil at once. It fails with a *FullError when the
// request has waited too long.
//
// Few large bodies are processed at a time, because a request that needs the
// processor or the disk for long delays all others.
func (c *Capacity) TakeLargeSlot(ctx context.Context, h Holder, size int) (*Hold, error) {
	if size <= smallBody {
		return nil, nil
	}
	one := Share{Max: 1}
	return c.group(h).heavy.Acquire(ctx, 1, c.limits.Patience, h.shares(Share{Max: int64(c.limits.Heavy)}, one, one)...)
}

// HoldAnswer takes the memory of an answer until the client has read it. For a small
// answer, which the operating system takes at once, it returns nil. It fails with a
// *FullError when clients of the holder are reading too many answers.
func (c *Capacity) HoldAnswer(h Holder, size int) (*Hold, error) {
	if size <= smallAnswer {
		return nil, nil
	}
	all := Share{Max: c.limits.AnswerBytes}
	half, quarter := Share{Max: c.limits.AnswerBytes / 2}, Share{Max: c.limits.AnswerBytes / 4}
	return c.answers.TryAcquire(int64(size), h.shares(half, quarter, all)...)
}

// TakeWait takes the right to wait for an event or a verdict. A request that waits holds
// no slot. TakeWait fails with a *FullError when too many requests of the holder wait.
func (c *Capacity) TakeWait(h Holder) (*Hold, error) {
	return c.waits.TryAcquire(1, h.shares(
		Share{Max: int64(c.limits.TaxpayerWaits)}, Share{Max: int64(c.limits.CredentialWaits)}, Share{Max: int64(c.limits.CredentialWaits)})...)
}

// Usage is how much of one part of the capacity is held.
type Usage struct {
	Name      string
	Used, Max int64
	Waiting   int
}

// Usage returns the state of each part of the capacity, for metrics.
func (c *Capacity) Usage() []Usage {
	parts := []struct {
		name string
		pool *Pool
	}{
		{"connections", c.connections},
		{"slots", c.tenants.slots}, {"body_reads", c.tenants.reads}, {"body_bytes", c.tenants.bytes}, {"large_bodies", c.tenants.heavy},
		{"stranger_slots", c.strangers.slots}, {"stranger_body_reads", c.strangers.reads}, {"stranger_body_bytes", c.strangers.bytes}, {"stranger_large_bodies", c.strangers.heavy},
		{"answer_bytes", c.answers}, {"waits", c.waits},
	}
	all := make([]Usage, len(parts))
	for i, part := range parts {
		used, waiting := part.pool.usage()
		all[i] = Usage{part.name, used, part.pool.max, waiting}
	}
	return all
}

package capacity

// Holds are what one request holds of the capacity. The zero value holds nothing.
type Holds struct {
	Slot  *Hold // while it executes
	Large *Hold // while it processes a large body
	Body  Body
}

// Release gives everything back.
func (h *Holds) Release() {
	h.Large.Release()
	h.Slot.Release()
	h.Body.Release()
	*h = Holds{}
}

package printed

// amounts returns the totals as a block of a width. A caption is right of its
// label when there is room, and otherwise below it.
func amounts(rows []amount, w float64) block {
	const padding = 2.0
	var b block
	for i, r := range rows {
		if r.weight == grand {
			b.stack(grandTotal(r, w, padding), 1.2)
			continue
		}
		name, value := body().colored(muted()), body()
		gap, indent := 0.4, padding
		switch r.weight {
		case plain, grand:
			if i > 0 && rows[i-1].weight == note {
				name, value = name.strong().colored(ink()), value.strong()
			}
		case detail:
			name, value = name.sized(7.5), value.colored(muted()).sized(7.5)
			gap, indent = 0, padding+3
		case note:
			name, value = name.sized(7.5), value.sized(7.5)
			if rows[i-1].weight == grand {
				gap = 1.2
			}
		}
		if i == 0 {
			gap = 0
		}
		b.stack(amountRow(r, name, value, indent, w-padding), gap)
	}
	return b
}

// amountRow returns one amount between two edges. Its label wraps; the amount
// stays on one line.
func amountRow(r amount, name, value style, from, to float64) block {
	var b block
	at := to - value.width(r.value)
	room := max(at-from-2, 20)
	b.add(paragraph(r.label, name, room, left), from, 0)
	if r.caption != "" {
		small := caption()
		if x := from + name.width(r.label) + 1.5; x+small.width(r.caption) <= from+room {
			b.line(r.caption, small, x, name.baseline()-small.baseline())
		} else {
			b.add(paragraph(r.caption, small, room, left), from, b.h-captionRise)
		}
	}
	b.line(r.value, value, at, name.baseline()-value.baseline())
	return b
}

// grandTotal returns the total, in a box.
func grandTotal(r amount, w, padding float64) block {
	name := body().strong().sized(11).colored(accent())
	value := name.fit(r.value, w-2*padding-4-name.width(r.label))
	const edge = 1.5
	var text block
	text.line(r.label, name, padding, edge)
	at := w - padding - value.width(r.value)
	if small, x := caption(), padding+name.width(r.label)+1.5; x+small.width(r.caption) < at-1 {
		text.line(r.caption, small, x, edge+name.baseline()-small.baseline())
	} else {
		text.line(r.caption, small, padding, text.h)
	}
	text.line(r.value, value, at, edge+name.baseline()-value.baseline())
	var b block
	b.fill(0, w, text.h+edge, tint())
	b.fill(0, w, 0.5, accent())
	b.add(text, 0, 0)
	return b
}

package printed

// remarks returns remarks as rows of a width on a letter page.
func remarks(list []remark, w float64) []row {
	return remarksIn(list, w, label().strong().colored(accent()), caption(), body().sized(8))
}

// remarksIn returns remarks in the given styles. Each line is a row, so that a
// remark may continue on the next page.
func remarksIn(list []remark, w float64, head, second, text style) []row {
	var rows []row
	add := func(b block) { rows = append(rows, row{b, -1}) }
	for _, r := range list {
		b := block{h: 2}
		if len(rows) == 0 {
			b.h = 0
		}
		y := b.h
		b.line(r.label, head, 0, y)
		b.line(r.caption, second, head.width(r.label)+1.5, y+head.baseline()-second.baseline())
		b.h += 0.4
		add(b)
		for _, line := range r.lines {
			for _, part := range wrap(line, text, w) {
				add(stanza([]string{part}, text, w, left))
			}
		}
	}
	return rows
}

// wideRemarks returns the remarks below the table, in its width. The first
// heading and its first line are one row.
func wideRemarks(list []remark) []row {
	rows := remarks(list, letterInner)
	if len(rows) > 1 {
		var first block
		first.h = 4
		first.stack(rows[0].block, 0)
		first.stack(rows[1].block, 0)
		rows = append([]row{{first, -1}}, rows[2:]...)
	}
	return rows
}

func height(rows []row) float64 {
	sum := 0.0
	for _, r := range rows {
		sum += r.h
	}
	return sum
}

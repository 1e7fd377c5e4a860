package main

// place gives each node of a row, in its order, a place near its neighbours. It
// returns how hard the lines are then to follow.
func (l *layout) place() int {
	l.width = pageWidth
	for _, row := range l.rows {
		for i, n := range row {
			n.index, n.x = i, margin+labelWidth+boxWidth/2+i*(boxWidth+boxGap)
		}
	}
	for range 8 {
		for r := range l.rows {
			l.settle(r, false)
		}
		for r := len(l.rows) - 1; r >= 0; r-- {
			l.settle(r, true)
		}
	}
	for r := len(l.rows) - 2; r >= 0; r-- {
		l.straighten(r)
	}
	return l.cost()
}

// settle moves the nodes of row r towards the mean of their neighbours above,
// and below if both is set.
func (l *layout) settle(r int, both bool) {
	wants := make([]want, len(l.rows[r]))
	for i, n := range l.rows[r] {
		sum, weight := 0, 0
		add := func(from, to *node) {
			w := 1
			if from.pkg == nil {
				w = 6 // a line that passes should be straight
			}
			sum, weight = sum+w*(from.x+to.x-n.x), weight+w
		}
		for _, u := range n.up {
			add(u, n)
		}
		for _, d := range n.down {
			if both {
				add(n, d)
			}
		}
		wants[i] = want{x: n.x, weight: 1}
		if weight > 0 {
			wants[i] = want{x: sum / weight, weight: weight}
		}
	}
	l.spread(r, wants)
}

// straighten moves the lines that pass row r above their place in the row below.
func (l *layout) straighten(r int) {
	wants := make([]want, len(l.rows[r]))
	for i, n := range l.rows[r] {
		wants[i] = want{x: n.x, weight: 1}
		if n.pkg == nil {
			wants[i] = want{x: n.down[0].x, weight: 100_000}
		}
	}
	l.spread(r, wants)
}

// spread puts the nodes of row r as near as possible to where they want to be,
// in their order and with room between them.
func (l *layout) spread(r int, wants []want) {
	row := l.rows[r]
	for i := 1; i < len(row); i++ {
		a, b := row[i-1], row[i]
		gap := boxGap
		switch {
		case a.pkg == nil && b.pkg == nil:
			gap = laneGap
		case a.pkg == nil || b.pkg == nil:
			gap = trunkGap
		}
		wants[i].offset = wants[i-1].offset + a.half() + gap + b.half()
	}
	last := len(row) - 1
	left := margin + labelWidth + max(row[0].half(), laneGap)
	right := l.width - margin - max(row[last].half(), laneGap) - laneGap - wants[last].offset
	if right < left {
		l.width += left - right
		right = left
	}
	for i, x := range ascending(wants, left, right) {
		row[i].x = x
	}
}

// A want says where something would like to stand, and how much, in a row of
// things of which each keeps at least the distance between two offsets.
type want struct{ x, weight, offset int }

// ascending returns the places nearest to the wants that keep the distances,
// with the first one between left and right. It pools neighbours that would
// stand in the wrong order.
func ascending(wants []want, left, right int) []int {
	type pool struct{ sum, weight, count int }
	pools := make([]pool, 0, len(wants))
	for _, w := range wants {
		pools = append(pools, pool{(w.x - w.offset) * w.weight, w.weight, 1})
		for n := len(pools); n > 1 && pools[n-2].sum*pools[n-1].weight > pools[n-1].sum*pools[n-2].weight; n-- {
			a, b := pools[n-2], pools[n-1]
			pools = append(pools[:n-2], pool{a.sum + b.sum, a.weight + b.weight, a.count + b.count})
		}
	}
	places := make([]int, 0, len(wants))
	for _, p := range pools {
		x := min(max((2*p.sum+p.weight)/(2*p.weight), left), right)
		for range p.count {
			places = append(places, x+wants[len(places)].offset)
		}
	}
	return places
}

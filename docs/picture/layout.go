package main

import (
	"cmp"
	"slices"
)

// Sizes in pixels. All arithmetic is on integers: floating point may differ in
// the last digit between processors, and the picture must not.
const (
	pageWidth  = 1200
	margin     = 16
	labelWidth = 58 // the floor's number, left of the boxes
	boxWidth   = 178
	boxHeight  = 72
	boxGap     = 22 // between two boxes
	trunkGap   = 13 // between a line that passes and a box
	laneGap    = 14 // between two lines that pass
	perRow     = 5  // boxes in a row of a band
)

// A search says how many orders of the boxes are tried, and how many of them are
// improved.
type search struct{ starts, finalists int }

// A node is a box, or the point where the line to a box passes a row.
//
// All arrows to one package share one line from the row below their start, so
// that each line leads to exactly one package.
type node struct {
	pkg      *pkg // nil where a line passes
	target   string
	row      int
	index    int // in its row, from the left
	x        int // of its middle
	up, down []*node
}

func (n *node) half() int {
	if n.pkg == nil {
		return 0
	}
	return boxWidth / 2
}

// A layout says where everything stands. Row 0 is the top.
type layout struct {
	rows  [][]*node // from left to right
	bands []band
	width int
}

// A band is a floor: some rows.
type band struct{ floor, first, last int }

// newLayout decides where the packages stand. It begins from many orders of the
// boxes, removes crossings from each, improves the most promising ones, and
// keeps the one whose lines are the easiest to follow.
func newLayout(packages []pkg, by search) *layout {
	l := &layout{}
	l.assignRows(packages)
	l.connect(packages)
	type start struct {
		rows [][]*node
		cost int
	}
	var tried []start
	seed := uint32(1)
	for range by.starts {
		for _, row := range l.rows {
			shuffle(row, &seed)
		}
		l.uncross()
		tried = append(tried, start{l.copyRows(), l.place()})
	}
	slices.SortStableFunc(tried, func(a, b start) int { return cmp.Compare(a.cost, b.cost) })
	tried = tried[:by.finalists]
	for i := range tried {
		l.rows = tried[i].rows
		tried[i].cost = l.improve()
		tried[i].rows = l.copyRows()
	}
	l.rows = slices.MinFunc(tried, func(a, b start) int { return cmp.Compare(a.cost, b.cost) }).rows
	l.place()
	return l
}

func (l *layout) copyRows() [][]*node {
	var rows [][]*node
	for _, row := range l.rows {
		rows = append(rows, slices.Clone(row))
	}
	return rows
}

// shuffle is an own generator: the same order with every release of Go.
func shuffle(row []*node, seed *uint32) {
	for i := len(row) - 1; i > 0; i-- {
		*seed = *seed*1664525 + 1013904223
		j := int(*seed>>16) % (i + 1)
		row[i], row[j] = row[j], row[i]
	}
}

// assignRows gives each floor a band of rows, the highest floor first. Where
// packages of a floor import each other, the one that is imported stands in a
// lower row of the band; the others fill the emptiest rows.
func (l *layout) assignRows(packages []pkg) {
	floors := map[int][]*pkg{}
	top := 0
	for i := range packages {
		p := &packages[i]
		floors[p.floor] = append(floors[p.floor], p)
		top = max(top, p.floor)
	}
	for floor := top; floor >= 0; floor-- {
		members := floors[floor]
		if len(members) == 0 {
			continue
		}
		depth := depths(members)
		count := (len(members) + perRow - 1) / perRow
		for _, d := range depth {
			count = max(count, d+1)
		}
		first := len(l.rows)
		l.rows = append(l.rows, make([][]*node, count)...)
		add := func(p *pkg, row int) {
			l.rows[row] = append(l.rows[row], &node{pkg: p, target: p.name, row: row})
		}
		for _, p := range members {
			if d, ok := depth[p.name]; ok {
				add(p, first+d)
			}
		}
		for _, p := range members {
			if _, ok := depth[p.name]; !ok {
				row := first
				for r := first; r < first+count; r++ {
					if len(l.rows[r]) < len(l.rows[row]) {
						row = r
					}
				}
				add(p, row)
			}
		}
		l.bands = append(l.bands, band{floor, first, first + count - 1})
	}
}

// depths returns for each package that imports, or is imported by, another of
// the same floor, how many of them stand above it.
func depths(members []*pkg) map[string]int {
	depth := map[string]int{}
	for range members {
		for _, p := range members {
			for _, q := range members {
				if slices.Contains(p.imports, q.name) {
					depth[p.name] += 0
					depth[q.name] = max(depth[q.name], depth[p.name]+1)
				}
			}
		}
	}
	return depth
}

// connect links each package with those it imports. A line that crosses a row
// gets a node there.
func (l *layout) connect(packages []pkg) {
	type stop struct {
		target string
		row    int
	}
	nodes := map[stop]*node{}
	boxes := map[string]*node{}
	for _, row := range l.rows {
		for _, n := range row {
			boxes[n.target], nodes[stop{n.target, n.row}] = n, n
		}
	}
	for i := range packages {
		for _, name := range packages[i].imports {
			for from := boxes[packages[i].name]; from.row < boxes[name].row; {
				at := stop{name, from.row + 1}
				next := nodes[at]
				if next == nil {
					next = &node{target: name, row: at.row}
					nodes[at] = next
					l.rows[at.row] = append(l.rows[at.row], next)
				}
				if slices.Contains(from.down, next) {
					break // the rest of the line is there already
				}
				from.down, next.up = append(from.down, next), append(next.up, from)
				from = next
			}
		}
	}
}

package main

import (
	"cmp"
	"slices"
)

// uncross swaps nodes of a row for as long as that removes crossings.
func (l *layout) uncross() {
	for _, row := range l.rows {
		for i, n := range row {
			n.index = i
		}
	}
	swap := func(row []*node, i, j int) {
		row[i], row[j] = row[j], row[i]
		row[i].index, row[j].index = i, j
	}
	for improved := true; improved; {
		improved = false
		for _, row := range l.rows {
			for i := range row {
				for j := i + 1; j < len(row); j++ {
					before := crossings(row, i, j)
					swap(row, i, j)
					if crossings(row, i, j) < before {
						improved = true
					} else {
						swap(row, i, j)
					}
				}
			}
		}
	}
}

// crossings counts the crossings of the lines of the nodes i and j of a row with each
// other and with those of the nodes between them. A swap of both changes no others.
func crossings(row []*node, i, j int) int {
	count := pairCrossings(row[i], row[j])
	for _, n := range row[i+1 : j] {
		count += pairCrossings(row[i], n) + pairCrossings(n, row[j])
	}
	return count
}

// pairCrossings counts the crossings between the lines of a node and of another one that
// is right of it. Lines that meet in a node do not cross there.
func pairCrossings(left, right *node) int {
	count := 0
	for _, ends := range [2][2][]*node{{left.up, right.up}, {left.down, right.down}} {
		for _, x := range ends[0] {
			for _, y := range ends[1] {
				if x.index > y.index {
					count++
				}
			}
		}
	}
	return count
}

// improve makes changes to the order for as long as they make the lines easier
// to follow, and returns the cost that it reached. A change swaps two neighbours
// or moves a whole line with its package to an edge of the picture.
func (l *layout) improve() int {
	now := l.place()
	for improved := true; improved; {
		improved = false
		for _, row := range l.rows {
			for i := 1; i < len(row); i++ {
				row[i-1], row[i] = row[i], row[i-1]
				if then := l.place(); then < now {
					now, improved = then, true
				} else {
					row[i-1], row[i] = row[i], row[i-1]
				}
			}
		}
		for _, target := range l.targets() {
			for _, right := range []bool{false, true} {
				before := l.copyRows()
				l.move(target, right)
				if then := l.place(); then < now {
					now, improved = then, true
				} else {
					l.rows = before
				}
			}
		}
	}
	return now
}

// targets returns the packages, sorted by name.
func (l *layout) targets() []string {
	var names []string
	for _, row := range l.rows {
		for _, n := range row {
			if n.pkg != nil {
				names = append(names, n.target)
			}
		}
	}
	slices.Sort(names)
	return names
}

// move puts a package and all of its line at the left or the right edge.
func (l *layout) move(target string, right bool) {
	side := -1
	if right {
		side = 1
	}
	weight := func(n *node) int {
		if n.target == target {
			return side
		}
		return 0
	}
	for _, row := range l.rows {
		slices.SortStableFunc(row, func(a, b *node) int { return cmp.Compare(weight(a), weight(b)) })
	}
}

// What is hard to follow, compared with one pixel to the side.
const (
	costCrossing = 250
	costBend     = 80
	costJog      = 500
)

// cost says how hard the lines are to follow: each crossing, each bend and each
// way to the side counts, and a step so small that it looks like a mistake
// counts most.
func (l *layout) cost() int {
	cost := l.width - pageWidth
	for r := range l.rows {
		nets := l.nets(r)
		for i, n := range nets {
			for _, m := range nets[i+1:] {
				cost += costCrossing * min(tangles(n, m), tangles(m, n))
			}
			for _, x := range n.starts {
				step := abs(x - n.end)
				cost += step
				if step > 0 {
					cost += costBend
				}
				if step > 0 && step < 2*corner {
					cost += costJog
				}
			}
		}
	}
	return cost
}

func abs(n int) int { return max(n, -n) }

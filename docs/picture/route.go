package main

import (
	"cmp"
	"slices"
)

const (
	portGap  = 12 // between two lines that leave one box
	trackGap = 9  // between two lines that go sideways
)

// A net is all that leads to one target between a row and the next: some starts
// above, one end below, and a track on which the line goes sideways.
type net struct {
	target      string
	starts      []int
	end         int
	left, right int // how far it goes sideways
	track       int
}

func (n net) straight() bool { return len(n.starts) == 1 && n.starts[0] == n.end }

// route returns the nets below row r and the number of their tracks.
func (l *layout) route(r int) ([]net, int) {
	nets := l.nets(r)
	untangle(nets)
	tracks := 0
	for i := range nets {
		if nets[i].straight() {
			continue
		}
		for _, above := range nets[:i] {
			if !above.straight() && meet(above, nets[i]) {
				nets[i].track = max(nets[i].track, above.track+1)
			}
		}
		tracks = max(tracks, nets[i].track+1)
	}
	return nets, tracks
}

// nets gathers the lines below row r by their ends, from left to right.
func (l *layout) nets(r int) []net {
	if r+1 == len(l.rows) {
		return nil
	}
	nets := make([]net, len(l.rows[r+1]))
	for i, n := range l.rows[r+1] {
		nets[i] = net{target: n.target, end: n.x, left: n.x, right: n.x, starts: make([]int, 0, len(n.up))}
	}
	for _, n := range l.rows[r] {
		slices.SortFunc(n.down, func(a, b *node) int { return cmp.Compare(a.index, b.index) })
		for i, x := range ports(n) {
			to := &nets[n.down[i].index]
			to.starts, to.left, to.right = append(to.starts, x), min(to.left, x), max(to.right, x)
		}
	}
	return slices.DeleteFunc(nets, func(n net) bool { return len(n.starts) == 0 })
}

// ports returns where the lines to the nodes below leave the node n: straight
// above their ends where the box is wide enough.
func ports(n *node) []int {
	if n.pkg == nil || len(n.down) == 0 {
		return slices.Repeat([]int{n.x}, len(n.down))
	}
	left, right := n.x-boxWidth/2+portGap, n.x+boxWidth/2-portGap
	wants := make([]want, len(n.down))
	for i, d := range n.down {
		wants[i] = want{x: min(max(d.x, left), right), weight: 1, offset: i * portGap}
	}
	return ascending(wants, left, max(left, right-wants[len(wants)-1].offset))
}

// meet reports whether two nets need tracks of their own.
func meet(a, b net) bool {
	return a.left < b.right+portGap && b.left < a.right+portGap
}

// untangle orders the nets from the highest track to the lowest, with as few
// crossings as swaps can reach.
func untangle(nets []net) {
	sum := func() int {
		sum := 0
		for i, above := range nets {
			for _, below := range nets[i+1:] {
				sum += tangles(above, below)
			}
		}
		return sum
	}
	now := sum()
	for improved := true; improved; {
		improved = false
		for i := range nets {
			for j := i + 1; j < len(nets); j++ {
				nets[i], nets[j] = nets[j], nets[i]
				if then := sum(); then < now {
					now, improved = then, true
				} else {
					nets[i], nets[j] = nets[j], nets[i]
				}
			}
		}
	}
}

// tangles counts the crossings of two nets, one on a higher track than the
// other. Two lines on top of each other count as many: one could not tell them
// apart.
func tangles(above, below net) int {
	sum := 0
	if !below.straight() && below.left < above.end && above.end < below.right {
		sum++
	}
	for _, x := range below.starts {
		if !above.straight() && above.left < x && x < above.right {
			sum++
		}
		if abs(x-above.end) < trackGap && !above.straight() && !below.straight() {
			sum += 100
		}
	}
	return sum
}

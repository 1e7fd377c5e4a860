//go:build linux

package power

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"syscall"
)

// A volume is the content of the disk between two power cuts.
type volume struct {
	mu   sync.Mutex // guards everything below, and all inodes
	dead bool       // the power is off
	root *inode
	last uint64 // inode number
	time uint64 // counts the changes of names

	trap *trap // nil: no cut waits for a sync
}

// A trap cuts the power when a file is about to be synced.
type trap struct {
	prefix string // of the name of the file
	keep   chooser
	after  chan *volume // gets what the disk has then
}

// An inode is a file or a folder.
type inode struct {
	ino      uint64
	mode     uint32 // with the bits of the type
	uid, gid uint32
	links    uint32
	name     string // the last one that it got

	content // of a file

	names   map[string]*inode // of a folder, as programs see it
	synced  map[string]*inode // as the disk has it
	pending []*change         // what makes the first from the second
}

// A change of names happens as a whole or not at all. A rename edits two names.
type change struct {
	at    uint64
	edits []edit
}

// An edit gives a name in a folder to an inode. Without an inode it removes the name.
type edit struct {
	folder *inode
	name   string
	to     *inode
}

func newVolume() *volume {
	v := &volume{}
	v.root = v.newInode(syscall.S_IFDIR|0o755, 0, 0)
	return v
}

func (v *volume) newInode(mode, uid, gid uint32) *inode {
	v.last++
	n := &inode{ino: v.last, mode: mode, uid: uid, gid: gid, content: newContent(nil)}
	if n.isFolder() {
		n.names, n.synced = map[string]*inode{}, map[string]*inode{}
	}
	return n
}

func (n *inode) isFolder() bool { return n.mode&syscall.S_IFMT == syscall.S_IFDIR }

// change edits names, as programs see them at once and the disk has them after a sync.
func (v *volume) change(edits ...edit) {
	v.time++
	c := &change{v.time, edits}
	for _, e := range edits {
		if old := e.folder.names[e.name]; old != nil {
			old.links--
		}
		if e.to == nil {
			delete(e.folder.names, e.name)
		} else {
			e.folder.names[e.name] = e.to
			e.to.links++
			e.to.name = e.name
		}
		if !slices.Contains(e.folder.pending, c) {
			e.folder.pending = append(e.folder.pending, c)
		}
	}
}

// apply makes a change durable.
func (c *change) apply() {
	for _, e := range c.edits {
		if e.to == nil {
			delete(e.folder.synced, e.name)
		} else {
			e.folder.synced[e.name] = e.to
		}
	}
}

// syncNames makes the names in a folder durable. When a file was moved between two
// folders, it does so for both.
func (v *volume) syncNames(folder *inode) {
	folders, changes := []*inode{folder}, map[*change]bool{}
	for i := 0; i < len(folders); i++ { // folders grows
		for _, c := range folders[i].pending {
			changes[c] = true
			for _, e := range c.edits {
				if !slices.Contains(folders, e.folder) {
					folders = append(folders, e.folder)
				}
			}
		}
	}
	for _, c := range inOrder(changes) {
		c.apply()
	}
	for _, f := range folders {
		f.pending = nil
	}
}

func inOrder(changes map[*change]bool) []*change {
	return slices.SortedFunc(maps.Keys(changes), func(a, b *change) int { return int(a.at) - int(b.at) })
}

// syncAll makes everything durable.
func (v *volume) syncAll() {
	for _, n := range v.reachable() {
		if n.isFolder() {
			v.syncNames(n)
		} else {
			n.sync()
		}
	}
}

// reachable returns all inodes that have a name, for programs or on the disk. The order is
// the same in every call.
func (v *volume) reachable() []*inode {
	all, seen := []*inode{v.root}, map[*inode]bool{v.root: true}
	for i := 0; i < len(all); i++ { // all grows
		for _, names := range []map[string]*inode{all[i].names, all[i].synced} {
			for _, name := range slices.Sorted(maps.Keys(names)) {
				if n := names[name]; !seen[n] {
					seen[n] = true
					all = append(all, n)
				}
			}
		}
	}
	return all
}

// sync makes the data of a file or the names in a folder durable. It reports false when
// the power goes off before that.
func (v *volume) sync(n *inode) bool {
	if v.trap != nil && !n.isFolder() && strings.HasPrefix(n.name, v.trap.prefix) {
		v.trap.after <- v.cut(v.trap.keep)
		return false
	}
	if n.isFolder() {
		v.syncNames(n)
	} else {
		n.sync()
	}
	return true
}

// cut turns the power off and returns what the disk has when the power is back.
func (v *volume) cut(keep chooser) *volume {
	v.dead = true
	v.keepNames(keep)
	after := &volume{last: v.last}
	copies := map[*inode]*inode{}
	var survive func(n *inode) *inode
	survive = func(n *inode) *inode {
		if c := copies[n]; c != nil {
			c.links++
			return c
		}
		c := &inode{ino: n.ino, mode: n.mode, uid: n.uid, gid: n.gid, links: 1}
		copies[n] = c
		if !n.isFolder() {
			c.content = n.survive(keep)
			return c
		}
		c.names, c.synced = map[string]*inode{}, map[string]*inode{}
		for _, name := range slices.Sorted(maps.Keys(n.synced)) {
			c.names[name] = survive(n.synced[name])
			c.synced[name] = c.names[name]
		}
		return c
	}
	after.root = survive(v.root)
	return after
}

// keepNames makes the first pending changes of each folder durable. A change of two
// folders is kept only if both keep it.
func (v *volume) keepNames(keep chooser) {
	room, changes := map[*inode]int{}, map[*change]bool{}
	for _, n := range v.reachable() {
		room[n] = keep.some(len(n.pending))
		for _, c := range n.pending {
			changes[c] = true
		}
	}
	for _, c := range inOrder(changes) {
		full := slices.ContainsFunc(c.edits, func(e edit) bool { return room[e.folder] <= 0 })
		for _, e := range c.edits {
			if full {
				room[e.folder] = 0 // later changes build on this one
			}
		}
		if !full {
			c.apply()
			folders := map[*inode]bool{}
			for _, e := range c.edits {
				folders[e.folder] = true
			}
			for f := range folders {
				room[f]--
			}
		}
	}
}

// A chooser decides what a disk keeps of the things that were not synced. A chooser
// without a source keeps nothing.
type chooser struct{ *rand.Rand }

// some returns how many of n changes are kept: none, all, or a number between.
func (c chooser) some(n int) int {
	if c.Rand == nil || n == 0 {
		return 0
	}
	switch c.IntN(3) {
	case 0:
		return 0
	case 1:
		return n
	}
	return c.IntN(n + 1)
}

// chance returns how likely each written sector of a file is kept: never, always, or as
// often as not.
func (c chooser) chance() float64 {
	if c.Rand == nil {
		return 0
	}
	return float64(c.IntN(3)) / 2
}

//go:build linux

package power

import (
	"context"
	"maps"
	"slices"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// A node answers the kernel's requests about one inode.
type node struct {
	fs.Inode
	v *volume
	n *inode
}

var _ = (interface {
	fs.NodeLookuper
	fs.NodeReaddirer
	fs.NodeMkdirer
	fs.NodeCreater
	fs.NodeLinker
	fs.NodeUnlinker
	fs.NodeRmdirer
	fs.NodeRenamer
	fs.NodeGetattrer
	fs.NodeSetattrer
	fs.NodeOpener
	fs.NodeReader
	fs.NodeWriter
	fs.NodeAllocater
	fs.NodeFsyncer
	fs.NodeStatfser
})((*node)(nil))

// renameNoReplace is the flag of renameat2 that keeps an existing file.
const renameNoReplace = 1

// locked runs an operation unless the power is off.
func (d *node) locked(do func() syscall.Errno) syscall.Errno {
	d.v.mu.Lock()
	defer d.v.mu.Unlock()
	if d.v.dead {
		return syscall.EIO
	}
	return do()
}

// entry returns the node of an inode, and describes it to the kernel. The volume must be
// locked.
func (d *node) entry(ctx context.Context, n *inode, out *fuse.EntryOut) *fs.Inode {
	n.attributes(&out.Attr)
	return d.NewInode(ctx, &node{v: d.v, n: n}, fs.StableAttr{Mode: n.mode & syscall.S_IFMT, Ino: n.ino})
}

func (n *inode) attributes(out *fuse.Attr) {
	out.Ino, out.Mode, out.Nlink, out.Blksize = n.ino, n.mode, n.links, 4096
	out.Uid, out.Gid = n.uid, n.gid
	out.Size = uint64(len(n.data))
	out.Blocks = (out.Size + sector - 1) / sector
}

// Lookup finds a name in a folder.
func (d *node) Lookup(ctx context.Context, name string, out *fuse.EntryOut) (child *fs.Inode, errno syscall.Errno) {
	errno = d.locked(func() syscall.Errno {
		n := d.n.names[name]
		if n == nil {
			return syscall.ENOENT
		}
		child = d.entry(ctx, n, out)
		return 0
	})
	return child, errno
}

// Readdir lists a folder.
func (d *node) Readdir(context.Context) (list fs.DirStream, errno syscall.Errno) {
	errno = d.locked(func() syscall.Errno {
		var entries []fuse.DirEntry
		for _, name := range slices.Sorted(maps.Keys(d.n.names)) {
			n := d.n.names[name]
			entries = append(entries, fuse.DirEntry{Name: name, Mode: n.mode, Ino: n.ino})
		}
		list = fs.NewListDirStream(entries)
		return 0
	})
	return list, errno
}

// add creates a file or a folder for the calling user.
func (d *node) add(ctx context.Context, name string, mode uint32, out *fuse.EntryOut) (child *fs.Inode, errno syscall.Errno) {
	var user fuse.Owner
	if caller, ok := fuse.FromContext(ctx); ok {
		user = caller.Owner
	}
	errno = d.locked(func() syscall.Errno {
		if d.n.names[name] != nil {
			return syscall.EEXIST
		}
		n := d.v.newInode(mode, user.Uid, user.Gid)
		d.v.change(edit{d.n, name, n})
		child = d.entry(ctx, n, out)
		return 0
	})
	return child, errno
}

// Mkdir creates a folder.
func (d *node) Mkdir(ctx context.Context, name string, mode uint32, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	return d.add(ctx, name, mode&^syscall.S_IFMT|syscall.S_IFDIR, out)
}

// Create creates a file and opens it.
func (d *node) Create(ctx context.Context, name string, _, mode uint32, out *fuse.EntryOut) (*fs.Inode, fs.FileHandle, uint32, syscall.Errno) {
	child, errno := d.add(ctx, name, mode&^syscall.S_IFMT|syscall.S_IFREG, out)
	return child, nil, fuse.FOPEN_KEEP_CACHE, errno
}

// Link gives a file another name.
func (d *node) Link(ctx context.Context, target fs.InodeEmbedder, name string, out *fuse.EntryOut) (child *fs.Inode, errno syscall.Errno) {
	other, ok := target.(*node)
	if !ok {
		return nil, syscall.EXDEV
	}
	errno = d.locked(func() syscall.Errno {
		if d.n.names[name] != nil {
			return syscall.EEXIST
		}
		d.v.change(edit{d.n, name, other.n})
		child = d.entry(ctx, other.n, out)
		return 0
	})
	return child, errno
}

// Unlink removes the name of a file.
func (d *node) Unlink(_ context.Context, name string) syscall.Errno { return d.remove(name) }

// Rmdir removes an empty folder.
func (d *node) Rmdir(_ context.Context, name string) syscall.Errno { return d.remove(name) }

func (d *node) remove(name string) syscall.Errno {
	return d.locked(func() syscall.Errno {
		switch n := d.n.names[name]; {
		case n == nil:
			return syscall.ENOENT
		case len(n.names) > 0:
			return syscall.ENOTEMPTY
		}
		d.v.change(edit{d.n, name, nil})
		return 0
	})
}

// Rename moves a file or a folder.
func (d *node) Rename(_ context.Context, name string, parent fs.InodeEmbedder, newName string, flags uint32) syscall.Errno {
	to, ok := parent.(*node)
	if !ok {
		return syscall.EXDEV
	}
	return d.locked(func() syscall.Errno {
		n, old := d.n.names[name], to.n.names[newName]
		switch {
		case n == nil:
			return syscall.ENOENT
		case flags&^renameNoReplace != 0:
			return syscall.EINVAL
		case flags == renameNoReplace && old != nil:
			return syscall.EEXIST
		case old == n:
			return 0 // two names of one file: both stay
		case old != nil && len(old.names) > 0:
			return syscall.ENOTEMPTY
		}
		d.v.change(edit{d.n, name, nil}, edit{to.n, newName, n})
		return 0
	})
}

// Getattr describes the inode.
func (d *node) Getattr(_ context.Context, _ fs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	return d.locked(func() syscall.Errno {
		d.n.attributes(&out.Attr)
		return 0
	})
}

// Setattr changes the size, the mode or the owner.
func (d *node) Setattr(_ context.Context, _ fs.FileHandle, in *fuse.SetAttrIn, out *fuse.AttrOut) syscall.Errno {
	return d.locked(func() syscall.Errno {
		if size, ok := in.GetSize(); ok {
			d.n.resize(int64(size))
		}
		if mode, ok := in.GetMode(); ok {
			d.n.mode = d.n.mode&syscall.S_IFMT | mode&^syscall.S_IFMT
		}
		if uid, ok := in.GetUID(); ok {
			d.n.uid = uid
		}
		if gid, ok := in.GetGID(); ok {
			d.n.gid = gid
		}
		d.n.attributes(&out.Attr)
		return 0
	})
}

// Open opens a file. The kernel caches it, so that programs can map it into memory.
func (d *node) Open(context.Context, uint32) (fs.FileHandle, uint32, syscall.Errno) {
	return nil, fuse.FOPEN_KEEP_CACHE, d.locked(func() syscall.Errno { return 0 })
}

// Read reads from a file.
func (d *node) Read(_ context.Context, _ fs.FileHandle, dest []byte, off int64) (result fuse.ReadResult, errno syscall.Errno) {
	errno = d.locked(func() syscall.Errno {
		result = fuse.ReadResultData(dest[:d.n.read(dest, off)])
		return 0
	})
	return result, errno
}

// Write writes to a file.
func (d *node) Write(_ context.Context, _ fs.FileHandle, data []byte, off int64) (written uint32, errno syscall.Errno) {
	errno = d.locked(func() syscall.Errno {
		d.n.write(data, off)
		return 0
	})
	if errno != 0 {
		return 0, errno
	}
	return uint32(len(data)), 0
}

// Allocate makes a file larger.
func (d *node) Allocate(_ context.Context, _ fs.FileHandle, off, size uint64, mode uint32) syscall.Errno {
	return d.locked(func() syscall.Errno {
		if mode != 0 {
			return syscall.EOPNOTSUPP
		}
		if end := int64(off + size); end > int64(len(d.n.data)) {
			d.n.resize(end)
		}
		return 0
	})
}

// Fsync makes the data of a file or the names in a folder durable.
func (d *node) Fsync(context.Context, fs.FileHandle, uint32) syscall.Errno {
	return d.locked(func() syscall.Errno {
		if !d.v.sync(d.n) {
			return syscall.EIO
		}
		return 0
	})
}

// Statfs says that there is room.
func (d *node) Statfs(_ context.Context, out *fuse.StatfsOut) syscall.Errno {
	const blocks = 16 << 30 / 4096
	out.Bsize, out.Frsize, out.NameLen = 4096, 4096, 255
	out.Blocks, out.Bfree, out.Bavail = blocks, blocks, blocks
	out.Files, out.Ffree = 1<<20, 1<<20
	return 0
}

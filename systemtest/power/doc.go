// Package power is a disk that can lose its power, for tests. The disk is a FUSE
// file system in memory. It keeps what programs have written apart from what they have
// synced. A power cut drops what was not synced:
//
//   - The content of a file is kept by fsync and fdatasync of that file.
//   - The names in a folder (new, renamed and removed) are kept by fsync of that folder.
//     The sync of a new file does not keep its name, and the sync of a new folder does not
//     keep the name of the folder.
//
// A real disk may have written more than it was asked for. So a cut may also keep a
// part, which a seed chooses: some of the sectors that were written to a file, its old or
// its new size, and the first changes of the names in a folder, in their order.
//
// A disk that has lost its power answers every operation with EIO, until it is mounted
// again. The mode and the owner of a file are kept without a sync, and files have no times.
//
// The file system runs in a process of its own, because a program that maps a file of its
// own file system into memory can wait for itself. TestMain must call [Main] first.
package power

package main

import (
	"bytes"
	"crypto/md5"  //nolint:gosec // digests of the format, which protect against accidents
	"crypto/sha1" //nolint:gosec // the same
	"crypto/sha256"
	"fmt"
	"path"
	"slices"
)

const rpmRelease = "1"

func rpmArch(t target) string {
	return map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[t.arch]
}

// rpm writes an RPM package: a lead for old programs, a header with digests, a header with
// everything about the package, and the files as a compressed cpio archive.
func (r release) rpm(t target, files []file, s scripts) ([]byte, error) {
	plain := r.cpio(files)
	payload, err := r.compress(plain)
	if err != nil {
		return nil, err
	}
	h := r.rpmMain(t, files, s)
	h.texts(5092, []string{fmt.Sprintf("%x", sha256.Sum256(payload))}) // digest of the payload
	h.numbers(5093, 8)                                                 // it is SHA-256
	header := h.encode(rpmHeaderRegion)

	signed := slices.Concat(header, payload)
	var digests rpmHeader
	digests.text(269, fmt.Sprintf("%x", sha1.Sum(header))) //nolint:gosec // a digest of the format
	digests.text(273, fmt.Sprintf("%x", sha256.Sum256(header)))
	digests.numbers(1000, uint32(len(signed))) //nolint:gosec // a package has less than 4 GiB
	sum := md5.Sum(signed)                     //nolint:gosec // a digest of the format
	digests.bytes(1004, sum[:])
	digests.numbers(1007, uint32(len(plain))) //nolint:gosec // see above
	signature := digests.encode(rpmSignatureRegion)
	for len(signature)%8 != 0 {
		signature = append(signature, 0)
	}
	return slices.Concat(r.rpmLead(t), signature, signed), nil
}

// rpmLead returns the lead, which only the program file(1) reads today.
func (r release) rpmLead(t target) []byte {
	lead := make([]byte, 96)
	copy(lead, []byte{0xed, 0xab, 0xee, 0xdb, 3, 0, 0, 0})
	lead[9] = map[string]byte{"amd64": 1, "arm64": 19}[t.arch]
	copy(lead[10:75], "fiscalhub-"+r.version+"-"+rpmRelease)
	lead[77], lead[79] = 1, 5 // Linux; the signature is a header
	return lead
}

// rpmMain returns the main header without the digest of the payload. The numbers are the
// tags of rpmtag.h.
func (r release) rpmMain(t target, files []file, s scripts) *rpmHeader {
	h := &rpmHeader{}
	h.texts(100, []string{"C"}) // the languages of translated texts
	h.text(1000, "fiscalhub")
	h.text(1001, r.version)
	h.text(1002, rpmRelease)
	h.translated(1004, "Electronic fiscal invoices for the Dominican Republic")
	h.translated(1005, description)
	h.numbers(1006, uint32(r.made.Unix())) //nolint:gosec // until 2106
	h.text(1007, "localhost")              // the build host is not recorded
	h.text(1014, "Apache-2.0")
	h.text(1015, maintainer)
	h.translated(1016, "System Environment/Daemons")
	h.text(1020, homepage)
	h.text(1021, "linux")
	h.text(1022, rpmArch(t))
	h.text(1044, "fiscalhub-"+r.version+"-"+rpmRelease+".src.rpm")
	h.text(1064, "4.18.0") // the release of rpm whose format this is
	h.text(1124, "cpio")
	h.text(1125, "gzip")
	h.text(1126, "9")
	h.text(5062, "utf-8")
	rpmScripts(h, s)
	rpmRelations(h, r, t)
	r.rpmFiles(h, files)
	return h
}

// rpmScripts adds the scripts. rpm passes the number of installed versions that remain: 0
// when a package is removed, and not upgraded.
func rpmScripts(h *rpmHeader, s scripts) {
	const removed = "[ \"$1\" -eq 0 ] || exit 0\n"
	h.text(1024, "set -e\n"+s.afterInstall)
	h.text(1025, removed+s.beforeRemove)
	h.text(1026, removed+s.afterRemove)
	for _, tag := range []uint32{1086, 1087, 1088} {
		h.text(tag, "/bin/sh")
	}
}

// rpmRelations adds what the package provides and needs.
func rpmRelations(h *rpmHeader, r release, t target) {
	const (
		equal     = 8
		atLeast   = 4 | equal
		ofRPM     = 1<<24 | 2 | equal // a feature of rpm itself, at most this version
		forScript = 1 << 10           // the script after the installation needs it
	)
	version := r.version + "-" + rpmRelease
	isa := map[string]string{"amd64": "fiscalhub(x86-64)", "arm64": "fiscalhub(aarch-64)"}[t.arch]
	h.texts(1047, []string{"config(fiscalhub)", "fiscalhub", isa})
	h.numbers(1112, equal|1<<28, equal, equal)
	h.texts(1113, []string{version, version, version})

	needs := []struct {
		name, version string
		flags         uint32
	}{
		{"/bin/sh", "", forScript | 1<<8}, {"config(fiscalhub)", version, equal | 1<<28}, {"rpmlib(CompressedFileNames)", "3.0.4-1", ofRPM}, {"rpmlib(FileDigests)", "4.6.0-1", ofRPM},
		{"rpmlib(PayloadFilesHavePrefix)", "4.0-1", ofRPM}, {"rpmlib(TildeInVersions)", "4.10.0-1", ofRPM}, {"shadow-utils", "", forScript}, {"systemd", "252", atLeast}, {"util-linux", "", forScript},
	}
	var names, versions []string
	var flags []uint32
	for _, n := range needs {
		names, versions, flags = append(names, n.name), append(versions, n.version), append(flags, n.flags)
	}
	h.numbers(1048, flags...)
	h.texts(1049, names)
	h.texts(1050, versions)
}

// rpmFiles adds the list of files.
func (r release) rpmFiles(h *rpmHeader, files []file) {
	var dirs, bases, digests, links, owners, langs []string
	var sizes, times, flags, verify, devices, inodes, dirIndex []uint32
	var modes, rdevs []uint16
	total := 0
	for i, f := range files {
		dir := "/" + path.Dir(f.name) + "/"
		if !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
		size, digest, flag := len(f.body), fmt.Sprintf("%x", sha256.Sum256(f.body)), uint32(0)
		switch {
		case f.isDir():
			size, digest = 4096, ""
		case f.settings:
			flag = 1 | 1<<4 // settings that an upgrade does not replace
		case f.doc:
			flag = 2
		}
		total += size
		bases, digests, links = append(bases, path.Base(f.name)), append(digests, digest), append(links, "")
		owners, langs = append(owners, "root"), append(langs, "")
		sizes, times = append(sizes, uint32(size)), append(times, uint32(r.made.Unix())) //nolint:gosec // small numbers, and times until 2106
		flags, verify = append(flags, flag), append(verify, 1<<32-1)
		devices, inodes = append(devices, 1), append(inodes, uint32(i+1))
		dirIndex = append(dirIndex, uint32(slices.Index(dirs, dir)))        //nolint:gosec // few folders
		modes, rdevs = append(modes, uint16(unixMode(f))), append(rdevs, 0) //nolint:gosec // a mode has 16 bits
	}
	h.numbers(1009, uint32(total))
	h.numbers(1028, sizes...)
	h.shorts(1030, modes)
	h.shorts(1033, rdevs)
	h.numbers(1034, times...)
	h.texts(1035, digests)
	h.texts(1036, links)
	h.numbers(1037, flags...)
	h.texts(1039, owners)
	h.texts(1040, owners)
	h.numbers(1045, verify...)
	h.numbers(1095, devices...)
	h.numbers(1096, inodes...)
	h.texts(1097, langs)
	h.numbers(1116, dirIndex...)
	h.texts(1117, bases)
	h.texts(1118, dirs)
	h.numbers(5011, 8) // digests of files are SHA-256
}

func unixMode(f file) uint32 {
	if f.isDir() {
		return 0o040000 | uint32(f.mode.Perm())
	}
	return 0o100000 | uint32(f.mode.Perm())
}

// cpio writes files in the "new ASCII" format of cpio.
func (r release) cpio(files []file) []byte {
	var b bytes.Buffer
	add := func(name string, inode, mode, links uint32, made int64, body []byte) {
		fmt.Fprintf(&b, "070701%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x", inode, mode, 0, 0, links, made, len(body), 0, 0, 0, 0, len(name)+1, 0)
		b.WriteString(name)
		b.WriteByte(0)
		pad(&b)
		b.Write(body)
		pad(&b)
	}
	for i, f := range files {
		links := uint32(1)
		if f.isDir() {
			links = 2
		}
		add("./"+f.name, uint32(i+1), unixMode(f), links, r.made.Unix(), f.body)
	}
	add("TRAILER!!!", 0, 0, 1, 0, nil)
	return b.Bytes()
}

// pad fills up to four bytes.
func pad(b *bytes.Buffer) {
	for b.Len()%4 != 0 {
		b.WriteByte(0)
	}
}

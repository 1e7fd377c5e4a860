package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"io/fs"
	"time"
)

// tarball writes files as a tar archive.
func tarball(files []file, made time.Time) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range files {
		h := &tar.Header{
			Typeflag: tar.TypeReg, Name: f.name, Mode: int64(f.mode.Perm()), Size: int64(len(f.body)),
			Uid: f.uid, Gid: f.uid, ModTime: made, Format: tar.FormatUSTAR,
		}
		if f.uid == 0 {
			h.Uname, h.Gname = "root", "root"
		}
		if f.isDir() {
			h.Typeflag, h.Name = tar.TypeDir, f.name+"/"
		}
		if f.mode&fs.ModeSticky != 0 {
			h.Mode |= 0o1000
		}
		if err := w.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.body); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// tarGz writes files as a compressed tar archive.
func (r release) tarGz(files []file) ([]byte, error) {
	plain, err := tarball(files, r.made)
	if err != nil {
		return nil, err
	}
	return r.compress(plain)
}

// zipArchive writes files as a ZIP archive.
func zipArchive(files []file, made time.Time) ([]byte, error) {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, f := range files {
		h := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: made}
		if f.isDir() {
			h.Name, h.Method = f.name+"/", zip.Store
		}
		h.SetMode(f.mode)
		to, err := w.CreateHeader(h)
		if err != nil {
			return nil, err
		}
		if _, err := to.Write(f.body); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

package capacity

import (
	"bytes"
	"strconv"
)

// framing reads the headers of HTTP/1 requests along with the server, to find a
// request that has both Content-Length and Transfer-Encoding: net/http hides the
// former. It follows a connection up to the first request with Transfer-Encoding,
// which is the last one of its connection (see CloseAfterChunks).
type framing struct {
	begun     bool   // a byte has been read
	line      []byte // the beginning of the current line
	cut       bool   // the line is longer than maxLine
	inRequest bool   // the request line has been read
	body      int64  // bytes of the body that have not been read

	length bool  // the current header has Content-Length
	size   int64 // its value
	chunks bool  // the current header has Transfer-Encoding
	done   bool  // nothing more is read
	both   bool  // the last header had both, or its length is not a number
}

// maxLine is how much of a header line framing keeps. The two header fields are
// shorter.
const maxLine = 64

// tlsHandshake is the first byte of a connection with TLS.
const tlsHandshake = 0x16

// read reads the next bytes of the connection. It reads nothing of a connection with
// TLS, which begins with another byte than a method does.
func (f *framing) read(b []byte) {
	if len(b) > 0 && !f.begun {
		f.begun, f.done = true, b[0] == tlsHandshake
	}
	for len(b) > 0 && !f.done {
		if f.body > 0 {
			n := min(f.body, int64(len(b)))
			f.body -= n
			b = b[n:]
			continue
		}
		end := bytes.IndexByte(b, '\n')
		part := b
		if end >= 0 {
			part = b[:end]
		}
		if room := maxLine - len(f.line); len(part) > room {
			part, f.cut = part[:room], true
		}
		f.line = append(f.line, part...)
		if end < 0 {
			return
		}
		f.endLine(bytes.TrimSuffix(f.line, []byte("\r")))
		f.line, f.cut = f.line[:0], false
		b = b[end+1:]
	}
}

// endLine reads a complete line of a header.
func (f *framing) endLine(line []byte) {
	switch {
	case len(line) == 0 && f.inRequest:
		f.endHeader()
	case len(line) == 0: // net/http accepts empty lines before a request
	case !f.inRequest:
		f.inRequest = true
	default:
		f.field(line)
	}
}

// field reads a header field.
func (f *framing) field(line []byte) {
	name, value, _ := bytes.Cut(line, []byte(":"))
	switch {
	case bytes.EqualFold(name, []byte("Transfer-Encoding")):
		f.chunks = true
	case bytes.EqualFold(name, []byte("Content-Length")):
		f.length = true
		n, err := strconv.ParseUint(string(bytes.Trim(value, " \t")), 10, 62)
		if err != nil || f.cut {
			// net/http refuses most of such requests. If it does not, the length
			// was written in an unusual way, and a proxy may read it in another.
			f.done, f.both = true, true
		}
		f.size = int64(n)
	}
}

// endHeader ends a header.
func (f *framing) endHeader() {
	if f.chunks {
		f.done, f.both = true, f.length
		return
	}
	f.body = f.size
	f.length, f.size, f.inRequest = false, 0, false
}

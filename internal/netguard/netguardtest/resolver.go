// Package netguardtest provides DNS resolvers with fixed answers for tests.
package netguardtest

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"strings"
)

const (
	typeA    = 1
	typeAAAA = 28
)

// Resolver returns a resolver that resolves a name to the addresses that answer
// returns. A name without addresses does not exist. The resolver calls answer for
// every connection and for each kind of address, from any goroutine. It sends nothing
// to the network.
func Resolver(answer func(name string) []netip.Addr) *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		go serve(server, answer) // ends when the client closes its end
		return client, nil
	}}
}

// Fixed returns a resolver that resolves every name to the same addresses.
func Fixed(addresses ...string) *net.Resolver {
	list := make([]netip.Addr, len(addresses))
	for i, a := range addresses {
		list[i] = netip.MustParseAddr(a)
	}
	return Resolver(func(string) []netip.Addr { return list })
}

// serve answers DNS queries over a stream (RFC 1035, section 4.2.2).
func serve(conn net.Conn, answer func(string) []netip.Addr) {
	defer func() { _ = conn.Close() }() // all replies are written
	for {
		var size [2]byte
		if _, err := io.ReadFull(conn, size[:]); err != nil {
			return
		}
		query := make([]byte, binary.BigEndian.Uint16(size[:]))
		if _, err := io.ReadFull(conn, query); err != nil {
			return
		}
		reply := respond(query, answer)
		if reply == nil {
			return
		}
		if _, err := conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(reply))), reply...)); err != nil {
			return
		}
	}
}

// respond returns the reply to a query with one question.
func respond(query []byte, answer func(string) []netip.Addr) []byte {
	const header = 12
	var labels []string
	at := header
	for at < len(query) && query[at] != 0 {
		end := at + 1 + int(query[at])
		if end >= len(query) {
			return nil
		}
		labels = append(labels, string(query[at+1:end]))
		at = end
	}
	if at+5 > len(query) {
		return nil
	}
	question := query[header : at+5]
	kind := binary.BigEndian.Uint16(query[at+1:])

	all := answer(strings.ToLower(strings.Join(labels, ".")))
	var records []byte
	count := uint16(0)
	for _, a := range all {
		if a.Is4() && kind != typeA || a.Is6() && kind != typeAAAA {
			continue
		}
		data := a.AsSlice()
		records = append(records, 0xc0, header) // a pointer to the name in the question
		records = binary.BigEndian.AppendUint16(records, kind)
		records = append(records, 0, 1, 0, 0, 0, 0) // class IN, time to live 0
		records = binary.BigEndian.AppendUint16(records, uint16(len(data)))
		records = append(records, data...)
		count++
	}
	flags := uint16(0x8180)
	if len(all) == 0 {
		flags |= 3 // no such name
	}
	reply := append([]byte{}, query[:2]...)
	for _, n := range []uint16{flags, 1, count, 0, 0} {
		reply = binary.BigEndian.AppendUint16(reply, n)
	}
	return append(append(reply, question...), records...)
}

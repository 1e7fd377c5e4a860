package reply_test

import (
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/reply"
)

// Any client may send a large document without a signature. It is parsed once, and its
// text is copied once. This test is not parallel, because it measures allocations.
func TestUnsignedDocumentIsParsedOnce(t *testing.T) {
	raw := []byte("<ECF><Encabezado><IdDoc><eNCF>E310000000001</eNCF></IdDoc><Emisor><RNCEmisor>131880681</RNCEmisor></Emisor><Comprador>" +
		"<RNCComprador>199000013</RNCComprador></Comprador></Encabezado><DetallesItems>" +
		strings.Repeat("<Item>"+strings.Repeat("Tornillo ", 100)+"</Item>", 2000) + "</DetallesItems></ECF>")
	now := time.Now()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := reply.ReadHead(raw, nil, now)
	runtime.ReadMemStats(&after)
	if !errors.Is(err, reply.ErrSignature) {
		t.Fatal(err)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > uint64(len(raw))*3/2 {
		t.Errorf("a document of %d bytes took %d bytes", len(raw), took)
	}
}

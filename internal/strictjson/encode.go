package strictjson

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Encode returns v as JSON, without HTML escapes and without a newline at the end.
// It fails when v cannot be encoded.
func Encode(v any) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return nil, fmt.Errorf("strictjson: encode: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

package envelope

import "testing"

func TestEncode(t *testing.T) {
	t.Parallel()
	data := struct {
		Name  *string `json:"name"`
		Other *string `json:"other"`
	}{NullIfEmpty("é"), NullIfEmpty("")}
	got, err := Encode(data, Meta{RequestID: "req_1"})
	if want := `{"data":{"name":"é","other":null},"meta":{"request_id":"req_1"}}`; err != nil || string(got) != want {
		t.Errorf("%s, %v; want %s", got, err, want)
	}
}

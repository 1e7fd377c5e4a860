package dgii

import (
	"strings"
	"testing"
)

func TestMessagesAreBounded(t *testing.T) {
	t.Parallel()
	long := `{"codigo":1,"valor":"` + strings.Repeat("ñ", 10_000) + `\u0000"},`
	body := `{"codigo":2,"estado":"Rechazado","mensajes":[` + strings.TrimSuffix(strings.Repeat(long+`"otro",`, 100), ",") + `]}`
	s := newEnv(t, answer(400, body))
	got, err := s.client(t).SubmitSummary(testContext(t), signer(t), shipment())
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Messages) != maxMessages || len(got.Raw) != maxRaw {
		t.Errorf("%d messages, %d bytes", len(got.Messages), len(got.Raw))
	}
	if want := strings.Repeat("ñ", maxMessageText); got.Messages[0].Text != want {
		t.Errorf("text of %d bytes", len(got.Messages[0].Text))
	}
}

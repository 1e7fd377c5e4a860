package store

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

// Form is a form that a person sends to create something, like a secret. It has a random
// token, so that it creates one object however often a browser sends it. A command has the
// zero Form.
type Form struct {
	Token string
}

// FormUsedError means that the form was sent before. ID is the object that it created.
type FormUsedError struct{ ID string }

func (e *FormUsedError) Error() string {
	return fmt.Sprintf("store: the form was sent before, and created %s", e.ID)
}

// maxToken is the length of the longest token of a form.
const maxToken = 64

// UseForm records that a form creates an object. The error is a *FormUsedError when the
// form has created one before. It stores nothing of the form and of the secret.
func (tx *Tx) UseForm(ctx context.Context, scope Scope, f Form, operation, objectID string, at time.Time) error {
	if f.Token == "" {
		return nil
	}
	if len(f.Token) > maxToken {
		return fmt.Errorf("store: the token of a form has more than %d bytes", maxToken)
	}
	used := StoredReply{
		Scope: scope, Operation: "form." + operation, Key: f.Token, Fingerprint: []byte{}, RawDigest: []byte{}, ObjectID: objectID,
		HTTPStatus: http.StatusCreated, CreatedAt: at, Body: []byte{},
	}
	if fresh, err := tx.write(ctx, "use form", rememberReply(used)); err != nil || fresh {
		return err
	}
	before, err := tx.StoredReply(ctx, scope, used.Operation, f.Token)
	if err != nil {
		return err
	}
	return &FormUsedError{before.ObjectID}
}

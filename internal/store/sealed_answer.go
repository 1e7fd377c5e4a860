package store

import "context"

// SealedAnswer is the encrypted body of a stored answer that contains a secret. The
// StoredReply of the same key has an empty body.
type SealedAnswer struct {
	Scope
	Operation string
	Key       string
	Secret    SealedSecret
}

// RememberReply stores the answer to a request that created a secret, and reports
// whether its key is new. It stores the encrypted body instead of the body of a. It
// waits for a running transaction that adds the same key.
func (tx *Tx) RememberReply(ctx context.Context, a StoredReply, sealed SealedSecret) (fresh bool, err error) {
	a.Body = []byte{}
	if fresh, err = tx.write(ctx, "remember answer", rememberReply(a)); err != nil || !fresh {
		return false, err
	}
	return true, tx.exec(ctx, "remember answer", `
		INSERT INTO sealed_answers (`+sealedAnswerColumns+`) VALUES ($1, $2, $3, $4, $5, $6)`,
		a.Environment, a.TaxpayerID, a.Operation, a.Key, sealed.Sealed, sealed.Version)
}

const sealedAnswerColumns = `environment, taxpayer_id, operation, key, sealed, sealed_version`

// SealedAnswer reads the encrypted body of a stored answer.
func (r reader) SealedAnswer(ctx context.Context, scope Scope, operation, key string) (SealedAnswer, error) {
	return one(r.rows(ctx, "read sealed answer", `
		SELECT `+sealedAnswerColumns+` FROM sealed_answers
		WHERE environment = $1 AND taxpayer_id = $2 AND operation = $3 AND key = $4`,
		scope.Environment, scope.TaxpayerID, operation, key), (*SealedAnswer).columns)
}

// SealedAnswers lists the encrypted bodies of all taxpayers and environments. The
// rotation of the master key uses it.
func (r reader) SealedAnswers(ctx context.Context) ([]SealedAnswer, error) {
	return collect(r.rows(ctx, "list sealed answers", `
		SELECT `+sealedAnswerColumns+` FROM sealed_answers
		ORDER BY environment, taxpayer_id, operation, key`), (*SealedAnswer).columns)
}

func (a *SealedAnswer) columns() []any {
	return []any{&a.Environment, &a.TaxpayerID, &a.Operation, &a.Key, &a.Secret.Sealed, &a.Secret.Version}
}

// RewrapAnswer replaces an encrypted body. It is the same body, encrypted with another
// master key.
func (tx *Tx) RewrapAnswer(ctx context.Context, a SealedAnswer) error {
	return tx.exec(ctx, "rewrap answer", `
		UPDATE sealed_answers SET sealed = $5
		WHERE environment = $1 AND taxpayer_id = $2 AND operation = $3 AND key = $4`,
		a.Environment, a.TaxpayerID, a.Operation, a.Key, a.Secret.Sealed)
}

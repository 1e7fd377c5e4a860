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
	n, err := rememberReply(a).run(ctx, tx.q)
	if err != nil || n == 0 {
		return false, tx.d.wrap("remember answer", err)
	}
	_, err = tx.q.ExecContext(ctx, `
		INSERT INTO sealed_answers (environment, taxpayer_id, operation, key, sealed, sealed_version)
		VALUES ($1, $2, $3, $4, $5, $6)`,
		a.Environment, a.TaxpayerID, a.Operation, a.Key, sealed.Sealed, sealed.Version)
	return true, tx.d.wrap("remember answer", err)
}

const sealedAnswerColumns = `environment, taxpayer_id, operation, key, sealed, sealed_version`

// SealedAnswer reads the encrypted body of a stored answer.
func (r reader) SealedAnswer(ctx context.Context, scope Scope, operation, key string) (SealedAnswer, error) {
	a, err := scanSealedAnswer(r.q.QueryRowContext(ctx, `
		SELECT `+sealedAnswerColumns+` FROM sealed_answers
		WHERE environment = $1 AND taxpayer_id = $2 AND operation = $3 AND key = $4`,
		scope.Environment, scope.TaxpayerID, operation, key))
	return a, r.d.wrap("read sealed answer", err)
}

// SealedAnswers lists the encrypted bodies of all taxpayers and environments. The
// rotation of the master key uses it.
func (r reader) SealedAnswers(ctx context.Context) ([]SealedAnswer, error) {
	rows, err := r.q.QueryContext(ctx, `
		SELECT `+sealedAnswerColumns+` FROM sealed_answers
		ORDER BY environment, taxpayer_id, operation, key`)
	if err != nil {
		return nil, r.d.wrap("list sealed answers", err)
	}
	return collect(r.d, "list sealed answers", rows, scanSealedAnswer)
}

func scanSealedAnswer(r row) (SealedAnswer, error) {
	var a SealedAnswer
	err := r.Scan(&a.Environment, &a.TaxpayerID, &a.Operation, &a.Key, &a.Secret.Sealed, &a.Secret.Version)
	return a, err
}

// RewrapAnswer replaces an encrypted body. It is the same body, encrypted with another
// master key.
func (tx *Tx) RewrapAnswer(ctx context.Context, a SealedAnswer) error {
	_, err := tx.q.ExecContext(ctx, `
		UPDATE sealed_answers SET sealed = $5
		WHERE environment = $1 AND taxpayer_id = $2 AND operation = $3 AND key = $4`,
		a.Environment, a.TaxpayerID, a.Operation, a.Key, a.Secret.Sealed)
	return tx.d.wrap("rewrap answer", err)
}

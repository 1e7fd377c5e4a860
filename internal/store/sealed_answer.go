package store

import "context"

// SealedAnswer is the body of a stored answer that holds a secret. The answer
// itself keeps an empty one.
type SealedAnswer struct {
	Scope
	Operation string
	Key       string
	Secret    SealedSecret
}

// RememberAnswer stores the answer of a creation, and tells whether its key is
// new. A transaction under way with the same key is waited for. A body that
// holds a secret is given sealed, and kept apart.
func (tx *Tx) RememberAnswer(ctx context.Context, a Answer, sealed SealedSecret) (fresh bool, err error) {
	a.Body = []byte{}
	n, err := rememberAnswer(a).run(ctx, tx.q)
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

// SealedAnswer reads the sealed body of a stored answer.
func (r reader) SealedAnswer(ctx context.Context, scope Scope, operation, key string) (SealedAnswer, error) {
	a, err := scanSealedAnswer(r.q.QueryRowContext(ctx, `
		SELECT `+sealedAnswerColumns+` FROM sealed_answers
		WHERE environment = $1 AND taxpayer_id = $2 AND operation = $3 AND key = $4`,
		scope.Environment, scope.TaxpayerID, operation, key))
	return a, r.d.wrap("read sealed answer", err)
}

// SealedAnswers lists those of all taxpayers and environments, for the master
// key.
func (r reader) SealedAnswers(ctx context.Context) ([]SealedAnswer, error) {
	rows, err := r.q.QueryContext(ctx, `
		SELECT `+sealedAnswerColumns+` FROM sealed_answers WHERE environment <> '' AND taxpayer_id <> ''
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

// RewrapAnswer replaces a sealed body by the same one under another master key.
func (tx *Tx) RewrapAnswer(ctx context.Context, a SealedAnswer) error {
	_, err := tx.q.ExecContext(ctx, `
		UPDATE sealed_answers SET sealed = $5
		WHERE environment = $1 AND taxpayer_id = $2 AND operation = $3 AND key = $4`,
		a.Environment, a.TaxpayerID, a.Operation, a.Key, a.Secret.Sealed)
	return tx.d.wrap("rewrap answer", err)
}

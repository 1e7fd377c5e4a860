package pipeline

import (
	"context"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// Facts decide whether a taxpayer may issue in an environment.
type Facts struct {
	Environment  fiscal.Environment
	Taxpayer     store.Taxpayer
	Certificates []store.Certificate // the oldest import first
	NumberRanges map[fiscal.Type][]store.NumberRange
}

// ReadFacts reads the facts about a taxpayer, for the types that are named or for
// all. The error is store.ErrNotFound when there is no such taxpayer.
func ReadFacts(ctx context.Context, s *store.Store, scope store.Scope, types ...fiscal.Type) (Facts, error) {
	if len(types) == 0 {
		types = []fiscal.Type{fiscal.FiscalCredit, fiscal.Consumer}
	}
	taxpayer, err := s.Taxpayer(ctx, scope.TaxpayerID)
	if err != nil {
		return Facts{}, err
	}
	certificates, err := s.CertificatesOf(ctx, scope)
	if err != nil {
		return Facts{}, err
	}
	facts := Facts{Environment: scope.Environment, Taxpayer: taxpayer, Certificates: certificates, NumberRanges: make(map[fiscal.Type][]store.NumberRange)}
	for _, t := range types {
		if facts.NumberRanges[t], err = s.NumberRangesOf(ctx, scope, t); err != nil {
			return Facts{}, err
		}
	}
	return facts, nil
}

// Missing lists what keeps the taxpayer from issuing a type of invoice now. The
// sandbox needs nothing.
func (f Facts) Missing(t fiscal.Type, now time.Time) fiscal.Problems {
	if f.Environment == fiscal.Sandbox {
		return nil
	}
	var missing fiscal.Problems
	if f.Taxpayer.Address == "" {
		missing = append(missing, fiscal.Problem{
			Field: "taxpayer", Code: "taxpayer.profile_incomplete",
			Message: lang.Messagef("the taxpayer has no address", "el contribuyente no tiene dirección"),
		})
	}
	if code, message := f.certificateProblem(now); code != "" {
		missing = append(missing, fiscal.Problem{Field: "certificate", Code: code, Message: message})
	}
	if _, code := UsableRange(f.NumberRanges[t], fiscal.DateOf(now)); code != "" {
		missing = append(missing, fiscal.Problem{Field: "sequence", Code: code, Message: f.rangeProblem(code, t)})
	}
	return missing
}

// rangeProblem returns the message for a code of UsableRange.
func (f Facts) rangeProblem(code string, t fiscal.Type) lang.Message {
	switch code {
	case "sequence.exhausted":
		return lang.Messagef("every authorised number of type %s in %s is taken",
			"ya se utilizaron todas las secuencias autorizadas del tipo %s en %s", t, f.Environment)
	case "sequence.expired":
		return lang.Messagef("the authorised numbers of type %s in %s have expired",
			"las secuencias autorizadas del tipo %s en %s están vencidas", t, f.Environment)
	case "sequence.fenced":
		return lang.Messagef("the numbers of type %s in %s are fenced; the operator must run fiscalhub reconcile",
			"las secuencias del tipo %s en %s están bloqueadas; el operador debe ejecutar fiscalhub reconcile", t, f.Environment)
	}
	return lang.Messagef("the taxpayer has no authorised numbers of type %s in %s",
		"el contribuyente no tiene secuencias autorizadas del tipo %s en %s", t, f.Environment)
}

// certificateProblem returns what keeps the taxpayer from signing, or nothing when it
// has a valid certificate.
func (f Facts) certificateProblem(now time.Time) (code string, message lang.Message) {
	c, ok := store.SigningCertificate(f.Certificates, now)
	if !ok {
		return "certificate.missing", lang.Messagef("the taxpayer has no certificate in %s", "el contribuyente no tiene certificado en %s", f.Environment)
	}
	switch c.State(now) {
	case store.CertificateExpired:
		return "certificate.expired", lang.Messagef("the taxpayer's certificate in %s expired on %s",
			"el certificado del contribuyente en %s venció el %s", f.Environment, c.NotAfter.Format(time.RFC3339))
	case store.CertificateNotYetValid:
		return "certificate.not_yet_valid", lang.Messagef("the taxpayer's certificate in %s is valid only from %s",
			"el certificado del contribuyente en %s es válido a partir del %s", f.Environment, c.NotBefore.Format(time.RFC3339))
	case store.CertificateRevoked:
		return "certificate.revoked", lang.Messagef("the taxpayer's certificate in %s was revoked on %s",
			"el certificado del contribuyente en %s fue revocado el %s", f.Environment, c.RevokedAt.Format(time.RFC3339))
	case store.CertificateValid:
	}
	return "", lang.Message{}
}

// UsableRange returns the first range of the list whose numbers may be used on a
// day. When there is none it returns the code of what is wrong with the last one.
func UsableRange(ranges []store.NumberRange, day fiscal.Date) (store.NumberRange, string) {
	problem := "sequence.missing"
	for _, r := range ranges {
		switch {
		case !r.FencedAt.IsZero():
			problem = "sequence.fenced"
		case r.Left() <= 0:
			problem = "sequence.exhausted"
		case r.Expired(day):
			problem = "sequence.expired"
		default:
			return r, ""
		}
	}
	return store.NumberRange{}, problem
}

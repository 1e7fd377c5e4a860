package main

import (
	"context"
	"slices"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/access"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/pipeline"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// certificates checks that each taxpayer that has certificates has one that signs now, with
// a private key that the master key opens, and that lasts for 30 days.
func (d *doctor) certificates(ctx context.Context) []checkOutcome {
	all, err := d.store.Certificates(ctx)
	if err != nil {
		return unread(lang.Messagef("The certificates cannot be read: %s.", "Los certificados no se pueden leer: %s.", err))
	}
	last := map[store.Scope]time.Time{} // zero: all are revoked
	for _, c := range all {
		if c.Environment != d.env {
			continue
		}
		end := last[c.Scope]
		if c.RevokedAt.IsZero() && c.NotAfter.After(end) {
			end = c.NotAfter
		}
		last[c.Scope] = end
	}
	if len(last) == 0 {
		return warned(lang.Messagef("No taxpayer has a certificate in %s.",
			"Ningún contribuyente tiene certificado en %s.", d.env), lang.Messagef("Import one with fiscalhub certificate import.",
			"Importe uno con fiscalhub certificate import."))
	}
	var broken, ending []lang.Message
	identities := access.NewCertificates(d.store, d.keys, d.store.Now)
	for scope, end := range last {
		if _, err := identities.Identity(ctx, scope, d.store.Now()); err != nil {
			broken = append(broken, lang.Messagef("taxpayer %s (%s)", "contribuyente %s (%s)", scope.TaxpayerID, err))
		} else if end.Sub(d.now()) < fiscal.EndsSoon {
			ending = append(ending, lang.Messagef("taxpayer %s (%s)", "contribuyente %s (%s)", scope.TaxpayerID, formatTime(end)))
		}
	}
	action := lang.Messagef("Import a new certificate with fiscalhub certificate import.",
		"Importe un certificado nuevo con fiscalhub certificate import.")
	var found []checkOutcome
	if len(broken) > 0 {
		found = append(found, failed(lang.Messagef("%s cannot sign: %s.",
			"No hay firma posible para %s: %s.", plural(len(broken), lang.Messagef("taxpayer", "contribuyente"), lang.Messagef("taxpayers", "contribuyentes")), few(broken)), action)...)
	}
	if len(ending) > 0 {
		found = append(found, warned(lang.Messagef("The certificates of %s end within 30 days: %s.",
			"Los certificados de %s vencen en 30 días: %s.", plural(len(ending), lang.Messagef("taxpayer", "contribuyente"), lang.Messagef("taxpayers", "contribuyentes")), few(ending)), action)...)
	}
	return orPassed(found, lang.Messagef("The certificates of %s sign, and are valid for 30 days or more.",
		"Los certificados de %s firman y son válidos por 30 días o más.", plural(len(last), lang.Messagef("taxpayer", "contribuyente"), lang.Messagef("taxpayers", "contribuyentes"))))
}

// few sorts a list and returns the first of it.
func few(names []lang.Message) lang.Message {
	in := func(l lang.Language) string {
		return firstFew(slices.Sorted(slices.Values(mapEach(names, func(m lang.Message) string { return m.In(l) }))))
	}
	return lang.Translated(in(lang.English), in(lang.Spanish))
}

// rangeOwner is a taxpayer and a type of its documents.
type rangeOwner struct {
	taxpayer string
	kind     fiscal.Type
}

// numberRanges checks that each taxpayer has numbers left, of each type that it has ranges
// of.
func (d *doctor) numberRanges(ctx context.Context) []checkOutcome {
	all, err := d.store.NumberRanges(ctx)
	if err != nil {
		return unread(lang.Messagef("The number ranges cannot be read: %s.", "Los rangos de secuencias no se pueden leer: %s.", err))
	}
	of := map[rangeOwner][]store.NumberRange{}
	for _, n := range all {
		if n.Environment == d.env {
			owner := rangeOwner{n.TaxpayerID, n.Type}
			of[owner] = append(of[owner], n)
		}
	}
	if len(of) == 0 {
		return warned(lang.Messagef("No taxpayer has a number range in %s.",
			"Ningún contribuyente tiene un rango de secuencias en %s.", d.env), lang.Messagef("Add one with fiscalhub range add.",
			"Agregue uno con fiscalhub range add."))
	}
	var none, ending []lang.Message
	for owner, ranges := range of {
		if _, code := pipeline.UsableRange(ranges, fiscal.DateOf(d.now())); code != "" {
			none = append(none, lang.Messagef("taxpayer %s type %s (%s)", "contribuyente %s tipo %s (%s)", owner.taxpayer, owner.kind, code))
		} else if left := numbersLeft(ranges, d.now().Add(fiscal.EndsSoon)); left < fiscal.LowNumbers {
			ending = append(ending, lang.Messagef("taxpayer %s type %s (%d)", "contribuyente %s tipo %s (%d)", owner.taxpayer, owner.kind, left))
		}
	}
	action := lang.Messagef("Ask the authority for numbers and add them with fiscalhub range add; release a fenced range with fiscalhub reconcile.",
		"Solicite secuencias a la DGII y agréguelas con fiscalhub range add; libere un rango bloqueado con fiscalhub reconcile.")
	var found []checkOutcome
	if len(none) > 0 {
		found = append(found, failed(lang.Messagef("No number can be used for %s of documents: %s.",
			"No hay secuencias utilizables para %s de documentos: %s.", plural(len(none), lang.Messagef("type", "tipo"), lang.Messagef("types", "tipos")), few(none)), action)...)
	}
	if len(ending) > 0 {
		found = append(found, warned(lang.Messagef("Fewer than %d numbers are left for the next 30 days, for %s of documents: %s.",
			"Quedan menos de %d secuencias para los próximos 30 días, para %s de documentos: %s.", fiscal.LowNumbers, plural(len(ending), lang.Messagef("type", "tipo"), lang.Messagef("types", "tipos")), few(ending)), action)...)
	}
	return orPassed(found, lang.Messagef("Numbers are left for the next 30 days, for %s of documents.",
		"Quedan secuencias para los próximos 30 días, para %s de documentos.", plural(len(of), lang.Messagef("type", "tipo"), lang.Messagef("types", "tipos"))))
}

// numbersLeft counts the numbers that may still be used on a later day.
func numbersLeft(ranges []store.NumberRange, at time.Time) (left int64) {
	for _, n := range ranges {
		if n.Left() > 0 && !n.Expired(fiscal.DateOf(at)) && n.FencedAt.IsZero() {
			left += n.Left()
		}
	}
	return left
}

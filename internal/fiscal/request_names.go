package fiscal

// The members of each object of a request, for the message about one that is
// written wrong.

func requestNames() []string {
	return []string{"external_id", "ecf_type", "issue_date", "due_date", "currency", "language", "payment_type", "buyer", "lines",
		"declared_totals", "purchase_order", "payment_terms", "notes", "estimated_withholdings"}
}

func buyerNames() []string { return []string{"legal_name", "tax_id", "email", "phone", "address"} }

func addressNames() []string {
	return []string{"line1", "line2", "city", "province_or_state", "postal_code", "country_code"}
}

func declaredNames() []string { return []string{"subtotal", "discount_total", "tax_total", "total"} }

func withholdingNames() []string {
	return []string{"income_tax_amount", "income_tax_base_amount", "income_tax_rate_percent",
		"itbis_amount", "itbis_base_amount", "itbis_rate_percent"}
}

func lineNames() []string {
	return []string{"line_id", "description", "sku", "unit", "item_kind", "billing_indicator", "unit_code", "quantity", "unit_price",
		"discount", "taxes"}
}

func discountNames() []string { return []string{"kind", "value"} }

func taxNames() []string { return []string{"code", "label", "rate_percent"} }

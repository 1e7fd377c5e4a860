package fiscal

// IsRNC reports whether s has the form of an RNC (9 digits) or of a cédula (11
// digits). It does not check the check digit.
func IsRNC(s string) bool { return (len(s) == 9 || len(s) == 11) && isDigits(s) }

// isDigits reports whether s is one or more ASCII digits.
func isDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

// CheckDigitHolds reports whether the last digit of an RNC (modulus 11) or of a
// cédula (modulus 10) is the check digit of the others. Some real identifiers
// have a wrong one, so callers only warn.
func CheckDigitHolds(id string) bool {
	switch len(id) {
	case 9:
		sum := 0
		for i, weight := range [8]int{7, 9, 8, 6, 5, 4, 3, 2} {
			sum += int(id[i]-'0') * weight
		}
		return int(id[8]-'0') == (10-sum%11)%9+1
	case 11:
		sum := 0
		for i := range 10 {
			product := int(id[i]-'0') * (1 + i%2)
			sum += product/10 + product%10
		}
		return int(id[10]-'0') == (10-sum%10)%10
	}
	return false
}

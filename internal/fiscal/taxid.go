package fiscal

// checkDigitHolds tells whether an identifier of 9 digits (RNC, modulus 11) or
// 11 digits (cédula, modulus 10) ends in the digit that the others give. Real
// identifiers exist that do not, so that a failure is only worth a note.
func checkDigitHolds(id string) bool {
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

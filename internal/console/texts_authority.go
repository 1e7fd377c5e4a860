package console

func authorityTexts() texts { return texts{} }

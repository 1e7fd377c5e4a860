package console

func keyTexts() texts { return texts{} }

package console

func workTexts() texts { return texts{} }

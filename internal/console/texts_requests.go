package console

func requestTexts() texts { return texts{} }

package console

func documentTexts() texts { return texts{} }

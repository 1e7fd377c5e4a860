package console

func exportTexts() texts { return texts{} }

package console

func taxpayerTexts() texts { return texts{} }

package console

func webhookTexts() texts { return texts{} }

package console

func issueTexts() texts { return texts{} }

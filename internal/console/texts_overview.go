package console

func overviewTexts() texts {
	return texts{
		"overview.title": {"Hoy", "Today"},
		"overview.hello": {"Hola, %s.", "Hello, %s."},
	}
}

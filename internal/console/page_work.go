package console

func (*Console) workPages() []page { return nil }

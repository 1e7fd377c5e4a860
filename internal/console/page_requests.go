package console

func (*Console) requestPages() []page { return nil }

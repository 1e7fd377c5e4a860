package console

func (*Console) authorityPages() []page { return nil }

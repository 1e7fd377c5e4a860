package console

func (*Console) exportPages() []page { return nil }

package console

func (*Console) keyPages() []page { return nil }

package console

func (*Console) documentPages() []page { return nil }

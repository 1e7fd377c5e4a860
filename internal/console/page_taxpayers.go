package console

func (*Console) taxpayerPages() []page { return nil }

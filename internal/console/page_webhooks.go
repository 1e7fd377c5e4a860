package console

func (*Console) webhookPages() []page { return nil }

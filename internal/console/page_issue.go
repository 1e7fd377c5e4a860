package console

func (*Console) issuePages() []page { return nil }

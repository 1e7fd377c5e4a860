package console

func (c *Console) overviewPages() []page {
	return []page{get("/console/", everyone(), c.showOverview)}
}

func (c *Console) showOverview(x *request) error {
	return x.render("overview", x.text("overview.title"), nil)
}

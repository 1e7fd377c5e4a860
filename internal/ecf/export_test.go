package ecf

// Complete returns the document as Read returns it, with its lines.
func (d *Draft) Complete() *Document {
	whole := d.Document
	for i := range d.lines {
		whole.Lines = append(whole.Lines, newLine(&d.lines[i]))
	}
	return &whole
}

package reference

import (
	"html"
	"html/template"
	"regexp"
	"strings"
)

// markdown turns the Markdown of the document into HTML. The document uses a small part
// of Markdown: paragraphs, lists with "*", tables, bold text and code. Everything else
// is shown as it is written.
type markdown struct {
	// anchors has the anchor of each code that the page explains. Code in the text links
	// to it.
	anchors map[string]string
	// rows says which anchor the rows of a table get, by the first cell of its head.
	rows map[string]func(code string) string
}

var (
	breakable   = strings.NewReplacer(".", ".<wbr>", "_", "_<wbr>") // where a narrow cell may break a code
	codePattern = regexp.MustCompile("`([^`]+)`")
	boldPattern = regexp.MustCompile(`\*\*([^*]+)\*\*`)
)

// block returns the HTML of a text of several paragraphs.
func (m markdown) block(text string) template.HTML {
	var out strings.Builder
	for part := range strings.SplitSeq(strings.TrimSpace(text), "\n\n") {
		lines := strings.Split(part, "\n")
		switch {
		case part == "":
		case strings.HasPrefix(lines[0], "|"):
			m.table(&out, lines)
		case strings.HasPrefix(lines[0], "* "):
			m.list(&out, lines)
		default:
			out.WriteString("<p>" + m.spans(part) + "</p>\n")
		}
	}
	return template.HTML(out.String()) //nolint:gosec // every text of the document is escaped in spans
}

// line returns the HTML of a text of one paragraph.
func (m markdown) line(text string) template.HTML {
	return template.HTML(m.spans(strings.TrimSpace(text))) //nolint:gosec // spans escapes the text
}

// spans returns the HTML of the text of a paragraph.
func (m markdown) spans(text string) string {
	var out strings.Builder
	last := 0
	for _, at := range codePattern.FindAllStringSubmatchIndex(text, -1) {
		out.WriteString(plain(text[last:at[0]]))
		out.WriteString(m.code(text[at[2]:at[3]]))
		last = at[1]
	}
	out.WriteString(plain(text[last:]))
	return out.String()
}

func plain(text string) string {
	return boldPattern.ReplaceAllString(html.EscapeString(text), "<strong>$1</strong>")
}

// code returns code in a text, with a link when the page explains it.
func (m markdown) code(text string) string {
	code := "<code>" + html.EscapeString(text) + "</code>"
	if anchor := m.anchors[text]; anchor != "" {
		return `<a class="ref" href="#` + anchor + `">` + code + "</a>"
	}
	return code
}

func (m markdown) list(out *strings.Builder, lines []string) {
	out.WriteString("<ul>\n")
	var item []string
	end := func() {
		if len(item) > 0 {
			out.WriteString("<li>" + m.spans(strings.Join(item, " ")) + "</li>\n")
		}
		item = nil
	}
	for _, line := range lines {
		if text, ok := strings.CutPrefix(line, "* "); ok {
			end()
			line = text
		}
		item = append(item, strings.TrimSpace(line))
	}
	end()
	out.WriteString("</ul>\n")
}

// table writes a table. On a narrow screen its rows become blocks, and each cell shows
// the head of its column.
func (m markdown) table(out *strings.Builder, lines []string) {
	head := cells(lines[0])
	anchor := m.rows[head[0]]
	m = markdown{anchors: m.anchors}
	out.WriteString("<table><thead><tr>")
	for _, cell := range head {
		out.WriteString(`<th scope="col">` + m.spans(cell) + "</th>")
	}
	out.WriteString("</tr></thead><tbody>\n")
	for _, line := range lines[2:] {
		row := cells(line)
		out.WriteString("<tr>")
		for i, cell := range row {
			content := m.spans(cell)
			if i == 0 && anchor != nil {
				content = anchored(cell, anchor)
			}
			out.WriteString(`<td data-label="` + html.EscapeString(strings.ReplaceAll(head[i], "`", "")) + `">` + content + "</td>")
		}
		out.WriteString("</tr>\n")
	}
	out.WriteString("</tbody></table>\n")
}

// anchored returns the codes of a cell, each with its anchor.
func anchored(cell string, anchor func(string) string) string {
	return codePattern.ReplaceAllStringFunc(html.EscapeString(cell), func(code string) string {
		code = strings.Trim(code, "`")
		id := html.EscapeString(anchor(code))
		return `<a class="ref" id="` + id + `" href="#` + id + `"><code>` + breakable.Replace(code) + "</code></a>"
	})
}

func cells(line string) []string {
	parts := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
	for i, part := range parts {
		parts[i] = strings.TrimSpace(part)
	}
	return parts
}

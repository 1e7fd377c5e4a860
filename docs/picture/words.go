package main

import "strings"

// emOf is roughly how wide a letter is in thousandths of the font's size. The
// picture uses the reader's own fonts, so that an exact width does not exist.
func emOf(r rune) int {
	switch {
	case strings.ContainsRune("ijl.,:;'|", r):
		return 260
	case strings.ContainsRune("frt()/- ", r):
		return 360
	case strings.ContainsRune("mwMW", r):
		return 850
	case r >= 'A' && r <= 'Z':
		return 680
	}
	return 560
}

// widthOf is roughly how many pixels s takes in a font of that size.
func widthOf(s string, size int) int {
	sum := 0
	for _, r := range s {
		sum += emOf(r)
	}
	return sum * size / 1000
}

// wrap breaks s into lines that fit into width pixels.
func wrap(s string, size, width int) []string {
	var lines []string
	for _, word := range strings.Fields(s) {
		if n := len(lines); n > 0 && widthOf(lines[n-1]+" "+word, size) <= width {
			lines[n-1] += " " + word
		} else {
			lines = append(lines, word)
		}
	}
	return lines
}

// shorten returns what a package owns in at most count lines. It keeps what
// stands before the first colon, semicolon or full stop, and of that as many of
// the parts between commas as there is room for.
func shorten(owns string, size, width, count int) []string {
	if i := strings.IndexAny(owns+":", ":;"); i < len(owns) {
		owns = owns[:i]
	}
	owns, _, _ = strings.Cut(owns, ". ")
	parts := strings.Split(strings.TrimSuffix(owns, "."), ", ")
	for n := len(parts); n > 0; n-- {
		text := strings.Join(parts[:n], ", ")
		if lines := wrap(text, size, width); len(lines) <= count {
			for narrower := width - 4; narrower > 0 && len(wrap(text, size, narrower)) == len(lines); narrower -= 4 {
				lines = wrap(text, size, narrower) // lines of about the same length
			}
			return lines
		}
	}
	lines := wrap(parts[0], size, width)[:count]
	lines[count-1] += " …"
	return lines
}

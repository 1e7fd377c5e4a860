package printed

import (
	"errors"

	"rsc.io/qr/coding"
)

// minVersion is the QR code version that the authority prescribes. Most addresses
// do not fit into it and need a larger version.
const minVersion = 8

// A qrCode is a square of modules; true is black.
type qrCode [][]bool

// encodeQR returns the QR code of an address in the smallest version from
// minVersion that holds it at level M, with the mask of the lowest penalty. It
// fails when the address is too long for any version.
func encodeQR(address string) (qrCode, error) {
	text := coding.String(address)
	version := coding.Version(minVersion)
	for text.Bits(version) > version.DataBytes(coding.M)*8 {
		if version++; version > coding.MaxVersion {
			return nil, errors.New("the address is too long for a QR code")
		}
	}
	var best qrCode
	lowest := 0
	for mask := range coding.Mask(8) {
		plan, err := coding.NewPlan(version, coding.M, mask)
		if err != nil {
			return nil, err
		}
		drawn, err := plan.Encode(text)
		if err != nil {
			return nil, err
		}
		code := modules(drawn)
		if p := code.penalty(); best == nil || p < lowest {
			best, lowest = code, p
		}
	}
	return best, nil
}

func modules(drawn *coding.Code) qrCode {
	code := make(qrCode, drawn.Size)
	for y := range code {
		code[y] = make([]bool, drawn.Size)
		for x := range code[y] {
			code[y][x] = drawn.Black(x, y)
		}
	}
	return code
}

// penalty returns the penalty of a code (ISO/IEC 18004, evaluation of masks): the
// higher, the harder it is to scan.
func (c qrCode) penalty() int {
	size, sum, dark := len(c), 0, 0
	column := make([]bool, size)
	for x := range size {
		for y, row := range c {
			column[y] = row[x]
		}
		sum += linePenalty(column)
	}
	for y, row := range c {
		sum += linePenalty(row)
		for x, black := range row {
			if black {
				dark++
			}
			if x > 0 && y > 0 && black == row[x-1] && black == c[y-1][x] && black == c[y-1][x-1] {
				sum += 3
			}
		}
	}
	// 10 points for every 5 percent by which the share of black differs from 50.
	away := 20*dark - 10*size*size
	return sum + max(away, -away)/(size*size)*10
}

// linePenalty returns the penalty of one row or column, for runs of five or more
// modules of one colour and for patterns that look like a finder.
func linePenalty(line []bool) int {
	const before, after, window = 0b00001011101, 0b10111010000, 1<<11 - 1
	sum, run, last := 0, 0, 0
	for i, black := range line {
		run++
		if i > 0 && black != line[i-1] {
			run = 1
		}
		switch {
		case run == 5:
			sum += 3
		case run > 5:
			sum++
		}
		last = last << 1 & window
		if black {
			last |= 1
		}
		if i >= 10 && (last == before || last == after) {
			sum += 40
		}
	}
	return sum
}

// A run is a sequence of adjacent black modules in a row.
type run struct{ x, y, n int }

// runs returns the black modules as runs.
func (c qrCode) runs() []run {
	var list []run
	for y, row := range c {
		for x := 0; x < len(row); x++ {
			start := x
			for x < len(row) && row[x] {
				x++
			}
			if x > start {
				list = append(list, run{start, y, x - start})
			}
		}
	}
	return list
}

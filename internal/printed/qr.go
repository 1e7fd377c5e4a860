package printed

import (
	"errors"

	"rsc.io/qr/coding"
)

// minVersion is the version of QR code that the authority prescribes. Most of
// its own addresses do not fit it, and grow.
const minVersion = 8

// A qrCode is a square of modules, true where black.
type qrCode [][]bool

// encodeQR returns the code of an address in the smallest version from 8 that
// holds it at level M, with the mask that the standard finds best to read.
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

// penalty is how hard a code is to read (ISO/IEC 18004, evaluation of masks).
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
	// Ten for every five percent that the share of black is away from half.
	away := 20*dark - 10*size*size
	return sum + max(away, -away)/(size*size)*10
}

// linePenalty counts runs of five and more of one colour, and what looks like
// the middle of a finder.
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

// A run is a row of black modules side by side.
type run struct{ x, y, n int }

// runs returns the black modules, those side by side as one.
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

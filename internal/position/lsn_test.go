package position_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/sqlreplicated/replicated/internal/position"
)

func TestParseLSN(t *testing.T) {
	for text, want := range map[string]uint64{
		"0/0":               0,
		"0/1":               1,
		"16/B374D848":       0x16_B374D848,
		"16/b374d848":       0x16_B374D848,
		"FFFFFFFF/FFFFFFFF": 1<<64 - 1,
		"00000016/00000001": 0x16_00000001, // PostgreSQL 19 prints eight digits behind the slash
	} {
		p, err := position.ParseLSN(text)
		if err != nil || p.LSN() != want || !p.Equal(position.FromLSN(want)) {
			t.Errorf("ParseLSN(%q) = %v, %v", text, p, err)
		}
	}
	for _, text := range []string{"", "/", "0", "0/", "/0", "G/0", "0/G", "000000000/0", "0/123456789", "0/0/0", " 0/0", "0/0 ", "-1/0", "+1/0", "0x1/0", "0/_1"} {
		if p, err := position.ParseLSN(text); err == nil || !p.IsZero() {
			t.Errorf("ParseLSN(%q) = %v, want an error", text, p)
		}
	}
	if got := position.FromLSN(0x16_0374D848).String(); got != "16/374D848" {
		t.Errorf("String is %q", got)
	}
	if got := gtidSet(uuidA + ":1").LSN(); got != 0 {
		t.Errorf("a GTID set has LSN %d", got)
	}
}

func TestLSNOrder(t *testing.T) {
	early, late := lsn("1/FFFFFFFF"), lsn("2/0")
	if !late.Contains(early) || early.Contains(late) || !early.Contains(early) {
		t.Error("contains is not ≥")
	}
	if !late.Exceeds(early) || early.Exceeds(late) || early.Exceeds(early) {
		t.Error("exceeds is not >")
	}
}

func TestInsertLSN(t *testing.T) {
	const block, segment = 8192, 16 << 20
	for _, test := range []struct {
		text, want     string
		block, segment uint64
	}{
		{"0/3000028", "0/3000000", block, segment},     // begin of a segment
		{"0/3002018", "0/3002000", block, segment},     // begin of a page
		{"0/3000018", "0/3000018", block, segment},     // 24 into a segment: inside its header
		{"0/3002028", "0/3002028", block, segment},     // 40 into a page: an ordinary place
		{"0/3002020", "0/3002020", block, segment},     // after the shortest continuation
		{"0/3000040", "0/3000040", block, segment},     //
		{"0/3002000", "0/3002000", block, segment},     // the end of a record already
		{"0/3000000", "0/3000000", block, segment},     //
		{"0/3000028", "0/3000000", block, 1 << 20},     // segments of another size
		{"0/3100028", "0/3100028", block, segment},     // the same place with 16 MB …
		{"0/3100028", "0/3100000", block, 1 << 20},     // … and with 1 MB
		{"0/3100018", "0/3100000", block, segment},     //
		{"0/3100018", "0/3100018", block, 1 << 20},     //
		{"0/3001018", "0/3001000", 4096, segment},      // pages of another size
		{"0/3001018", "0/3001018", block, segment},     //
		{"7F/40000028", "7F/40000000", 65536, 1 << 30}, //
		{"0/28", "0/0", block, segment},
	} {
		p, err := position.InsertLSN(test.text, test.block, test.segment)
		if err != nil || !p.Equal(lsn(test.want)) {
			t.Errorf("InsertLSN(%s, %d, %d) = %v, %v, want %s", test.text, test.block, test.segment, p, err, test.want)
		}
	}
	for _, sizes := range [][2]uint64{{0, 0}, {8192, 0}, {0, segment}, {8191, segment}, {8192, segment + 1}, {512, segment}, {1 << 17, segment}, {8192, 1 << 19}, {8192, 1 << 31}} {
		if p, err := position.InsertLSN("0/3000028", sizes[0], sizes[1]); err == nil || !p.IsZero() {
			t.Errorf("InsertLSN with sizes %v = %v, want an error", sizes, p)
		}
	}
	if _, err := position.InsertLSN("x", block, segment); err == nil {
		t.Error("InsertLSN reads what is no LSN")
	}
}

// TestInsertLSNIsTheEndOfTheLastRecord compares with the arithmetic of
// XLogBytePosToRecPtr and XLogBytePosToEndRecPtr of access/transam/xlog.c, on
// every place where a record can end near the borders of pages.
func TestInsertLSNIsTheEndOfTheLastRecord(t *testing.T) {
	rnd := rand.New(rand.NewPCG(2, 2))
	for range 40 {
		block, segment := uint64(1)<<(10+rnd.IntN(7)), uint64(1)<<(20+rnd.IntN(11))
		page := block - 24                      // usable bytes of a page
		whole := segment/block*page - (40 - 24) // and of a segment
		first := block - 40                     // and of its first page
		recPtr := func(pos uint64, end bool) uint64 {
			start, left := pos/whole*segment, pos%whole
			if left < first {
				if left == 0 && end {
					return start
				}
				return start + 40 + left
			}
			left -= first
			start += block + left/page*block
			if left%page == 0 && end {
				return start
			}
			return start + 24 + left%page
		}
		for range 200 {
			segmentNo := rnd.Uint64N(1000)
			// Records end at multiples of 8.
			near := []uint64{0, first + page*rnd.Uint64N(segment/block-1), whole - page}[rnd.IntN(3)]
			pos := segmentNo*whole + near + 8*uint64(rnd.IntN(20)) - min(near, 8*uint64(rnd.IntN(20)))
			pos -= pos % 8
			raw, want := recPtr(pos, false), recPtr(pos, true)
			p, err := position.InsertLSN(fmt.Sprintf("%X/%X", raw>>32, uint32(raw)), block, segment)
			if err != nil || p.LSN() != want {
				t.Fatalf("byte %d with pages of %d and segments of %d: InsertLSN(%X) = %X, %v, want %X", pos, block, segment, raw, p.LSN(), err, want)
			}
		}
	}
}

package position_test

import (
	"strings"
	"testing"

	"github.com/sqlreplicated/replicated/internal/position"
)

func TestFilePosition(t *testing.T) {
	at := func(name string, offset uint64) position.Position { return position.FilePosition(uuidA, name, offset) }
	for _, test := range []struct {
		name              string
		p, q              position.Position
		contains, exceeds bool
	}{
		{"same place", at("binlog.000001", 4), at("binlog.000001", 4), true, false},
		{"later in the file", at("binlog.000001", 5), at("binlog.000001", 4), true, true},
		{"earlier in the file", at("binlog.000001", 4), at("binlog.000001", 5), false, false},
		{"next file", at("binlog.000002", 4), at("binlog.000001", 999), true, true},
		{"file before", at("binlog.000001", 999), at("binlog.000002", 4), false, false},
		{"the millionth file", at("binlog.1000000", 4), at("binlog.999999", 999), true, true},
		{"zeros do not count", at("binlog.1", 4), at("binlog.000001", 4), true, false},
		{"numbers above 2^63", at("binlog.18446744073709551615", 4), at("binlog.9223372036854775808", 4), true, true},
		{"another name", at("other.000009", 4), at("binlog.000001", 4), false, true},
		{"dots in the name", at("my.db.000009", 4), at("my.db.000001", 4), true, true},
		{"another name, less far", at("other.000001", 4), at("binlog.000009", 4), false, true},
		{"another server, less far", position.FilePosition(uuidB, "binlog.000001", 4), at("binlog.000009", 4), false, true},
		{"another server", position.FilePosition(uuidB, "binlog.000009", 4), at("binlog.000001", 4), false, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := test.p.Contains(test.q); got != test.contains {
				t.Errorf("%v contains %v: %t", test.p, test.q, got)
			}
			if got := test.p.Exceeds(test.q); got != test.exceeds {
				t.Errorf("%v exceeds %v: %t", test.p, test.q, got)
			}
		})
	}
	for _, name := range []string{"binlog", "binlog.", ".000001", "binlog.00000x", "binlog.-1", "binlog.18446744073709551616", strings.Repeat("b", 600) + ".000001"} {
		if p := at(name, 4); !p.IsZero() {
			t.Errorf("%q is the position %v", name, p)
		}
	}
	if p := position.FilePosition("", "binlog.000001", 4); !p.IsEmpty() {
		t.Errorf("without a source there is the position %v", p)
	}
	if got := at("binlog.000007", 120).String(); got != uuidA+":binlog.000007:120" {
		t.Errorf("String is %q", got)
	}
}

func TestMergeOfWhatCannotBeComparedIsNowhere(t *testing.T) {
	for _, pair := range [][2]position.Position{
		{position.FilePosition(uuidA, "binlog.000001", 4), position.FilePosition(uuidB, "binlog.000002", 4)},
		{position.FilePosition(uuidA, "binlog.000001", 4), position.FilePosition(uuidA, "other.000002", 4)},
		{position.BeatPosition(1, 5), position.BeatPosition(2, 1)},
	} {
		if m := pair[0].Merge(pair[1]); m.Kind() != position.Nowhere {
			t.Errorf("the merger of %v and %v is %v", pair[0], pair[1], m)
		}
	}
}

func TestBeatPosition(t *testing.T) {
	for _, test := range []struct {
		name              string
		p, q              position.Position
		contains, exceeds bool
	}{
		{"same beat", position.BeatPosition(7, 3), position.BeatPosition(7, 3), true, false},
		{"later beat", position.BeatPosition(7, 4), position.BeatPosition(7, 3), true, true},
		{"earlier beat", position.BeatPosition(7, 2), position.BeatPosition(7, 3), false, false},
		{"row that is new", position.BeatPosition(8, 9), position.BeatPosition(7, 3), false, true},
		{"row that is new, fewer beats", position.BeatPosition(8, 1), position.BeatPosition(7, 3), false, true},
		{"first beat", position.BeatPosition(7, 0), position.BeatPosition(7, 0), true, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.p.Contains(test.q) != test.contains || test.p.Exceeds(test.q) != test.exceeds {
				t.Errorf("%v contains %v: %t, exceeds it: %t", test.p, test.q, test.p.Contains(test.q), test.p.Exceeds(test.q))
			}
		})
	}
	if got := position.BeatPosition(0xab, 3).String(); got != "00000000000000ab:3" {
		t.Errorf("String is %q", got)
	}
}

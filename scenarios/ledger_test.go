package scenarios

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/sqlreplicated/replicated"
)

// What the rows say of each outcome.
func TestLedgerAudit(t *testing.T) {
	var l ledger
	outcomes := []outcome{acknowledged, acknowledged, acknowledged, failed, failed, unknown, unknown, unknown}
	for _, o := range outcomes {
		if id := l.begin(); o != unknown {
			l.end(id, o)
		}
	}
	l.miss(1)
	l.miss(3) // lost: nobody can see it
	got := l.audit(map[int64]int{
		1: 1, // acknowledged, and there
		2: 2, // twice
		// 3 is lost
		4: 1, // said to have failed
		// 5 has failed
		6: 1, // not known: there
		// 7 is not known, and not there
		8:  2, // not known, and twice
		99: 1, // never begun
	})
	want := audit{lost: []int64{3}, doubled: []int64{2, 8}, phantom: []int64{4, 99}, stale: []int64{1}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("audit %v, want %v", got, want)
	}
	if n := l.acknowledged(); n != 3 {
		t.Errorf("%d acknowledged, want 3", n)
	}
}

func TestLedgerAckSince(t *testing.T) {
	var l ledger
	before := time.Now()
	l.end(l.begin(), failed)
	if _, ok := l.ackSince(before); ok {
		t.Error("a failed write counts as acknowledged")
	}
	l.end(l.begin(), acknowledged)
	first := l.acks[0]
	l.end(l.begin(), acknowledged)
	if at, ok := l.ackSince(before); !ok || at != first {
		t.Errorf("the first since the beginning is at %v, want %v", at, first)
	}
	if _, ok := l.ackSince(time.Now().Add(time.Second)); ok {
		t.Error("a write is acknowledged in the future")
	}
	if begun, ok := l.begun(2); !ok || begun.Before(before) {
		t.Errorf("write 2 begun at %v, %v", begun, ok)
	}
	if _, ok := l.begun(4); ok {
		t.Error("a write that was never begun has a time")
	}
}

func TestOutcomeOf(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want outcome
	}{
		{nil, acknowledged},
		{fmt.Errorf("%w: lost", replicated.ErrOutcomeUnknown), unknown},
		{context.DeadlineExceeded, unknown},
		{context.Canceled, unknown},
		{replicated.ErrNoPrimary, failed},
		{driver.ErrBadConn, failed},
		{errors.New("read-only"), failed},
	} {
		if got := outcomeOf(tt.err); got != tt.want {
			t.Errorf("%v: outcome %d, want %d", tt.err, got, tt.want)
		}
	}
}

// The number of a write is found in its text, and in no other.
func TestWriteOf(t *testing.T) {
	for _, x := range []texts{{}, {engine: 2}} {
		for _, withArgs := range []bool{false, true} {
			if id, ok := writeOf(x.insert(1234, 5, withArgs)); !ok || id != 1234 {
				t.Errorf("%q: number %d, %v", x.insert(1234, 5, withArgs), id, ok)
			}
		}
	}
	for _, text := range []string{"", "SELECT 1", ledgerMark, ledgerMark + "12*/", ledgerMark + "x */"} {
		if id, ok := writeOf(text); ok {
			t.Errorf("%q: number %d", text, id)
		}
	}
}

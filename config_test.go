package replicated_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"testing"

	"github.com/sqlreplicated/replicated"
)

// noConnector is a connector that is never used.
type noConnector struct{}

func (noConnector) Connect(context.Context) (driver.Conn, error) { return nil, errors.New("not used") }
func (noConnector) Driver() driver.Driver                        { return nil }

func TestModesHaveTheWordsOfTheDSN(t *testing.T) {
	for _, tt := range []struct {
		zero  fmt.Stringer
		at    func(i uint8) fmt.Stringer
		words []string
	}{
		{replicated.TopologyStatic, func(i uint8) fmt.Stringer { return replicated.TopologyMode(i) }, []string{"static", "discover", "TopologyMode(2)"}},
		{replicated.ReadsAuto, func(i uint8) fmt.Stringer { return replicated.ReadsMode(i) }, []string{"auto", "opt-in", "shadow", "off", "ReadsMode(4)"}},
		{replicated.ConsistencyProcess, func(i uint8) fmt.Stringer { return replicated.Consistency(i) }, []string{"process", "session", "eventual", "Consistency(3)"}},
		{replicated.TrackerAuto, func(i uint8) fmt.Stringer { return replicated.TrackerMode(i) }, []string{"auto", "position", "heartbeat", "off", "TrackerMode(4)"}},
		{replicated.ReadOnlyTxReplica, func(i uint8) fmt.Stringer { return replicated.ReadOnlyTxMode(i) }, []string{"replica", "primary", "ReadOnlyTxMode(2)"}},
		{replicated.BalanceP2C, func(i uint8) fmt.Stringer { return replicated.BalanceMode(i) }, []string{"p2c", "round-robin", "BalanceMode(2)"}},
		{replicated.PrimaryDownFail, func(i uint8) fmt.Stringer { return replicated.PrimaryDownMode(i) }, []string{"fail", "stale", "PrimaryDownMode(2)"}},
	} {
		t.Run(fmt.Sprintf("%T", tt.zero), func(t *testing.T) {
			if tt.zero != tt.at(0) {
				t.Errorf("the zero value is %s", tt.at(0))
			}
			for i, want := range tt.words {
				if got := tt.at(uint8(i)).String(); got != want {
					t.Errorf("%d: got %q, want %q", i, got, want)
				}
			}
		})
	}
}

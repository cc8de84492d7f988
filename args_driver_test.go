package replicated

import (
	"context"
	"database/sql/driver"
	"encoding/binary"
	"io"
	"net"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/lib/pq"
)

// mysqlChecker returns the NamedValueChecker of a real connection of
// go-sql-driver/mysql, opened against the least of a server: one greeting, one
// OK.
func mysqlChecker(t *testing.T) func(*driver.NamedValue) error {
	t.Helper()
	config := mysql.NewConfig()
	config.Net, config.Addr, config.User = "tcp", "node:3306", "app"
	config.MaxAllowedPacket = 1 << 20 // 0 would be a query
	config.DialFunc = func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		go func() {
			const (
				protocol41   = 0x0200
				secureConn   = 0x8000
				pluginAuth   = 0x00080000
				capabilities = protocol41 | secureConn | pluginAuth
			)
			greeting := append([]byte{10}, "8.0.0-fake\x00"...)
			greeting = append(greeting, 1, 0, 0, 0)        // connection id
			greeting = append(greeting, "12345678\x00"...) // seed, first part
			greeting = append(greeting, 0, capabilities>>8&0xff, 45, 2, 0, capabilities>>16&0xff, 0, 21)
			greeting = append(greeting, make([]byte, 10)...)
			greeting = append(greeting, "123456789012\x00"...) // seed, second part
			greeting = append(greeting, "mysql_native_password\x00"...)
			_, _ = server.Write(append([]byte{byte(len(greeting)), 0, 0, 0}, greeting...))
			header := make([]byte, 4)
			if _, err := io.ReadFull(server, header); err != nil {
				return
			}
			_, _ = io.CopyN(io.Discard, server, int64(header[0])|int64(header[1])<<8)
			_, _ = server.Write([]byte{7, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0})
			_, _ = io.Copy(io.Discard, server)
		}()
		return client, nil
	}
	connector, err := mysql.NewConnector(config)
	if err != nil {
		t.Fatal(err)
	}
	return checkerOf(t, connector)
}

// pqChecker returns the NamedValueChecker of a real connection of lib/pq,
// opened against the least of a server: authenticated, ready.
func pqChecker(t *testing.T, options string) func(*driver.NamedValue) error {
	t.Helper()
	connector, err := pq.NewConnector("host=node port=5432 user=app dbname=app password='' sslmode=disable " + options)
	if err != nil {
		t.Fatal(err)
	}
	connector.Dialer(pipeDialer{})
	return checkerOf(t, connector)
}

func checkerOf(t *testing.T, connector driver.Connector) func(*driver.NamedValue) error {
	t.Helper()
	conn, err := connector.Connect(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn.(driver.NamedValueChecker).CheckNamedValue
}

// pipeDialer is a lib/pq Dialer whose server lets everybody in.
type pipeDialer struct{}

func (pipeDialer) Dial(string, string) (net.Conn, error) {
	client, server := net.Pipe()
	go func() {
		header := make([]byte, 4)
		if _, err := io.ReadFull(server, header); err != nil {
			return
		}
		_, _ = io.CopyN(io.Discard, server, int64(binary.BigEndian.Uint32(header))-4)
		_, _ = server.Write([]byte{'R', 0, 0, 0, 8, 0, 0, 0, 0})
		_, _ = server.Write([]byte{'Z', 0, 0, 0, 5, 'I'})
		_, _ = io.Copy(io.Discard, server)
	}()
	return client, nil
}

func (d pipeDialer) DialTimeout(network, address string, _ time.Duration) (net.Conn, error) {
	return d.Dial(network, address)
}

package dialect

import (
	"context"
	"database/sql/driver"
)

// QueryRow is queryRow with text for values.
func QueryRow(ctx context.Context, conn driver.Conn, text string, n int) ([]string, error) {
	row, err := queryRow(ctx, conn, text, n)
	var out []string
	for _, c := range row {
		out = append(out, c.text)
	}
	return out, err
}

// QuotePostgres and the others quote one value; "" is NULL to QuoteMySQL.
func QuotePostgres(s string) (string, error) { return quotePostgres(s) }

func QuoteMySQL(s string) (string, error) { return quoteMySQL(cell{text: s, null: s == ""}) }

func QuoteMySQLName(s string) (string, error) { return quoteMySQLName(cell{text: s}) }

// MySQLVersion is mysqlVersion.
func MySQLVersion(s string) int { return mysqlVersion(s) }

// KillText is killText.
func KillText(id Identity) string { return killText(id) }

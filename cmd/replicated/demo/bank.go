package demo

import (
	"fmt"
	"strconv"
	"strings"
)

// bank is the application: accounts, and payments into them. Its statements are
// written with ? and get the placeholders of the servers' SQL.
type bank struct {
	schema   []string
	numbered bool // placeholders are $1, $2, …

	// What the database can do.

	lockingReads bool // SELECT … FOR UPDATE
	writingCTEs  bool // WITH … AS (UPDATE … RETURNING …)
	functions    bool // add_bonus(account) pays in a bonus
}

// bonus is what the stored function pays in.
const bonus = 5

// The accounts of each part of the demo, so that none disturbs another.
const (
	users        = 8
	routingAcct  = 1
	naiveAcct    = 10 // and the following ones, one for each user
	oursAcct     = 20
	outageAcct   = 30
	primaryAcct  = 39
	accounts     = 40
	firstBalance = 100
)

const (
	depositText = "UPDATE accounts SET balance = balance + ? WHERE id = ?"
	balanceText = "SELECT balance FROM accounts WHERE id = ?"
)

// text puts the placeholders in.
func (b bank) text(query string) string {
	if !b.numbered {
		return query
	}
	var out strings.Builder
	n := 0
	for part := range strings.SplitSeq(query, "?") {
		if n > 0 {
			out.WriteString("$" + strconv.Itoa(n))
		}
		out.WriteString(part)
		n++
	}
	return out.String()
}

// tables are the same in every SQL.
func tables() []string {
	owners := []string{"Ada", "Ben", "Cleo", "Dan", "Eve", "Finn", "Gus", "Hana"}
	rows := make([]string, 0, accounts)
	for id := range accounts {
		rows = append(rows, fmt.Sprintf("(%d, '%s', %d)", id, owners[id%len(owners)], firstBalance))
	}
	return []string{
		"CREATE TABLE accounts (id INTEGER PRIMARY KEY, owner VARCHAR(20) NOT NULL, balance INTEGER NOT NULL)",
		"CREATE TABLE payments (id INTEGER PRIMARY KEY, account INTEGER NOT NULL, amount INTEGER NOT NULL)",
		"INSERT INTO accounts (id, owner, balance) VALUES " + strings.Join(rows, ", "),
	}
}

func postgresBank() bank {
	return bank{
		schema: append(tables(), `CREATE FUNCTION add_bonus(account INTEGER) RETURNS INTEGER LANGUAGE sql AS
			'UPDATE accounts SET balance = balance + `+strconv.Itoa(bonus)+` WHERE id = account RETURNING balance'`),
		numbered: true, lockingReads: true, writingCTEs: true, functions: true,
	}
}

func mariaBank() bank {
	return bank{
		schema: append(tables(), `CREATE FUNCTION add_bonus(account INTEGER) RETURNS INTEGER MODIFIES SQL DATA
			BEGIN
				UPDATE accounts SET balance = balance + `+strconv.Itoa(bonus)+` WHERE id = account;
				RETURN (SELECT balance FROM accounts WHERE id = account);
			END`),
		lockingReads: true, functions: true,
	}
}

func sqliteBank() bank {
	return bank{schema: tables()}
}

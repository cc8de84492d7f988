//go:build !go1.27

package replicated

import "database/sql/driver"

// wrapScanner returns nil: before Go 1.27 there is no RowsColumnScanner.
func wrapScanner(driver.Rows, *firstRow, func(error) error, func(error) error) driver.Rows {
	return nil
}

// fetchScanner returns no scan: before Go 1.27 every first row is read by Next.
func fetchScanner(driver.Rows) (scan func(index int) (driver.Value, error), err error) {
	return nil, nil
}

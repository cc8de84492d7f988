package route

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// BenchmarkStreaming reads 50 MiB of each kind of input, and fails if memory grows
// with the length.
func BenchmarkStreaming(b *testing.B) {
	const size = 50 << 20
	inputs := []struct{ format, file string }{
		{"sql", ""}, {"lines", ""},
		{"pglog", "pg-statement.log"}, {"pgcsv", "pg-statement.csv"}, {"pgjson", "pg-statement.json"},
		{"mysqlgeneral", "general-mariadb.log"}, {"mysqlslow", "slow-mariadb.log"},
	}
	for _, in := range inputs {
		text := "SELECT o.id, o.total FROM orders o JOIN customers c ON c.id = o.customer_id WHERE c.city = 'Oslo' AND o.total > 50 ORDER BY o.total;\n"
		if in.file != "" {
			data, err := os.ReadFile(filepath.Join("testdata", in.file))
			if err != nil {
				b.Fatal(err)
			}
			text = string(data)
		}
		for _, format := range []string{"text", "json"} {
			b.Run(fmt.Sprintf("%s/%s", in.format, format), func(b *testing.B) {
				b.SetBytes(size)
				b.ReportAllocs()
				most := uint64(0)
				for b.Loop() {
					watched := &memoryWatch{in: &repeated{text: text, left: size}, most: &most}
					var stderr bytes.Buffer
					if status := run([]string{"-input", in.format, "-format", format}, watched, io.Discard, &stderr); status != exitOK {
						b.Fatalf("exit status %d, %s", status, &stderr)
					}
				}
				b.ReportMetric(float64(most)/(1<<20), "heap-MiB")
				if most > 32<<20 {
					b.Errorf("%d MiB of heap for an input of %d MiB", most>>20, size>>20)
				}
			})
		}
	}
}

// memoryWatch looks at the heap now and then, when its reader comes for more.
type memoryWatch struct {
	in   io.Reader
	most *uint64
	read int
	next int
}

func (w *memoryWatch) Read(p []byte) (int, error) {
	if w.read >= w.next {
		w.next = w.read + 8<<20
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		*w.most = max(*w.most, m.HeapAlloc)
	}
	n, err := w.in.Read(p)
	w.read += n
	return n, err
}

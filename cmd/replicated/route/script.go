package route

import (
	"io"
	"strings"

	"github.com/sqlreplicated/replicated/internal/classify"
)

// pieceSize is how much of a script is read at once.
const pieceSize = 64 << 10

// scriptReader reads SQL scripts, cut at semicolons. What it holds of
// one grows with the longest statement only.
type scriptReader struct {
	dialect classify.Dialect
}

func (*scriptReader) skipped() int64 { return 0 }

func (r *scriptReader) read(in io.Reader, emit func(*entry) error) error {
	rest := ""
	var piece []byte
	for {
		// As much again as is left over: however long a statement is, it is looked
		// at a logarithmic number of times, and each time twice as much of it.
		if size := max(pieceSize, len(rest)); len(piece) != size {
			piece = make([]byte, size)
		}
		n, err := io.ReadFull(in, piece)
		text := rest + string(piece[:n])
		for {
			n, ok := classify.Cut(r.dialect, text)
			if !ok {
				break
			}
			if err := r.emit(text[:n], emit); err != nil {
				return err
			}
			text = text[n:]
		}
		rest = text
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			return r.emit(rest, emit)
		}
		if err != nil {
			return err
		}
	}
}

func (r *scriptReader) emit(text string, emit func(*entry) error) error {
	text = strings.Trim(strings.TrimSuffix(text, ";"), " \t\r\n\f\v\ufeff")
	if text == "" || classify.Classify(r.dialect, text).Class == classify.Empty {
		return nil
	}
	e := statement(text)
	return emit(&e)
}

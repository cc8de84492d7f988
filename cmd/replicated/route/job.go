package route

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"

	"github.com/sqlreplicated/replicated/internal/classify"
)

// job is one run of the command.
type job struct {
	*options
	stdin  io.Reader
	stderr io.Writer
	out    *bufio.Writer

	bar     *progress
	decider *decider
	json    *jsonLines     // or nil
	sum     *summary       // or nil
	rec     *recordSummary // or nil: the input is no record
	skipped int64
	dialect classify.Dialect // of the input that was begun last
	source  string           // what the report says it is about
	live    bool
	log     bool
}

func (j *job) run() error {
	j.bar = newProgress(j.stderr, j.size())
	defer j.bar.end()
	if j.dsn != "" {
		if err := j.ask(); err != nil {
			return err
		}
	} else if err := j.readAll(); err != nil {
		return err
	}
	j.bar.end()
	if j.rec != nil {
		return j.tellRecord()
	}
	switch j.output {
	case "text":
		return writeText(j.out, j.report())
	case "html":
		return writeHTML(j.out, j.report())
	}
	return nil
}

func (j *job) readAll() error {
	for _, name := range j.files {
		shown := name
		if name == "-" {
			shown = "standard input"
		}
		if err := j.readFile(name); err != nil {
			return fmt.Errorf("%s: %w", shown, err)
		}
		if j.source != "" {
			j.source += ", "
		}
		j.source += shown
	}
	return nil
}

// size returns how many bytes there are to read, or 0 if that is not known.
func (j *job) size() (total int64) {
	for _, name := range j.files {
		info, err := os.Stat(name)
		if name == "-" || err != nil || !info.Mode().IsRegular() {
			return 0
		}
		total += info.Size()
	}
	return total
}

func (j *job) readFile(name string) error {
	in := j.stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		defer f.Close()
		in = f
	}
	plain, err := unpack(j.bar.reader(in))
	if err != nil {
		return err
	}
	f := j.input
	if f == nil {
		head, err := plain.Peek(detectSize)
		if err != nil && err != io.EOF {
			return err
		}
		if f, err = detect(head); err != nil {
			return fmt.Errorf("%w: %w", errUsage, err)
		}
	}
	if f.record != (j.rec != nil) && j.source != "" {
		return fmt.Errorf("%w: records and statements make different reports: give them one after the other", errUsage)
	}
	if f.record {
		if j.rec == nil {
			j.rec = newRecordSummary()
		}
		return j.rec.read(plain)
	}
	d := j.options.dialect
	if !j.dialectSet {
		d = f.dialect
	}
	o := *j.options
	o.dialect = d
	j.begin(d, f.sessions)
	j.log = j.log || f.log
	r := f.reader(&o)
	err = r.read(plain, j.take)
	j.skipped += r.skipped()
	return err
}

// tellRecord writes what records tell.
func (j *job) tellRecord() error {
	switch j.output {
	case "json":
		return writeRecordJSON(j.out, j.rec)
	case "html":
		return writeRecordHTML(j.out, newRecordReport(j.source, j.rec, j.top))
	default:
		return writeRecordText(j.out, newRecordReport(j.source, j.rec, j.top))
	}
}

// begin prepares for an input in the dialect. Files of a log are one log, so that
// sessions go on from one to the next.
func (j *job) begin(d classify.Dialect, sessions bool) {
	if j.decider == nil || j.decider.dialect != d || (j.decider.sessions != nil) != sessions {
		j.decider = newDecider(d, sessions)
	}
	j.dialect = d
	switch {
	case j.output == "json":
		if j.json == nil {
			j.json = newJSONLines(j.out)
		}
	case j.sum == nil:
		j.sum = newSummary(newNormalizer(d), j.values)
	default:
		j.sum.norm.dialect = d
	}
}

// take is what readers give their entries to.
func (j *job) take(e *entry) error {
	switch e.note {
	case noteEnded:
		j.decider.ended(e.session)
		return nil
	case noteTook:
		if s := j.decider.session(e.session); s != nil && s.last != nil && j.sum != nil {
			j.sum.count(s.last, amount{took: e.took, timed: 1})
			s.last = nil
		}
		return nil
	}
	d, err := j.decider.decide(e)
	if err != nil {
		return err
	}
	if j.json != nil {
		return j.json.write(e, &d)
	}
	g := j.sum.add(e, &d)
	if s := j.decider.session(e.session); s != nil {
		s.last = nil
		if e.took < 0 {
			s.last = g
		}
	}
	return nil
}

// unpack reads gzip files, as rotated logs are, like others.
func unpack(in io.Reader) (*bufio.Reader, error) {
	plain := bufio.NewReaderSize(in, detectSize)
	head, err := plain.Peek(2)
	if err != nil && err != io.EOF {
		return nil, err
	}
	if !bytes.Equal(head, []byte{0x1f, 0x8b}) {
		return plain, nil
	}
	z, err := gzip.NewReader(plain)
	if err != nil {
		return nil, err
	}
	return bufio.NewReaderSize(z, detectSize), nil
}

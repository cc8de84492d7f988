package graphql

import (
	"io"
	"mime"
	"mime/multipart"
	"strings"
)

// keyOperations is the part of an upload that has the request. As a parameter of the
// URL it comes before that for those who use [http.Request.FormValue].
const keyOperations = "operations"

// upload reads the part "operations" of a file upload, as the GraphQL multipart
// request specification has it: the first part, JSON with null for the files. Servers
// that stream insist on it being the first; those that collect the form take it from
// anywhere, and then it may stand behind the files.
//
// No more is read than up to the beginning of the next part: the files stay on the
// connection.
func (d *decision) upload(rec recorder, boundary string) Verdict {
	part, err := multipart.NewReader(rec, boundary).NextRawPart()
	if err != nil {
		return partly(rec)
	}
	if part.FormName() != keyOperations || part.FileName() != "" {
		return unknown(NotGraphQL, nil)
	}
	if !plain(part) {
		return unknown(Encoded, nil)
	}
	text, err := io.ReadAll(part) // bounded by rec
	if err != nil {
		return partly(rec)
	}
	return d.json(text)
}

// partly returns the verdict on an error of the multipart reader: the body failed, is
// longer than is looked at, or is not as it should be.
func partly(rec recorder) Verdict {
	switch met := rec.of.err; {
	case met != nil && met != io.EOF:
		return unread(met)
	case int64(len(rec.of.kept)) > rec.max:
		return unread(errTooLarge)
	}
	return unknown(Malformed, nil)
}

// plain tells whether a part is UTF-8 text as it stands. RFC 7578 section 4.7 has
// Content-Transfer-Encoding deprecated; some readers decode it nevertheless.
func plain(part *multipart.Part) bool {
	switch strings.ToLower(part.Header.Get("Content-Transfer-Encoding")) {
	case "", "7bit", "8bit", "binary":
	default:
		return false
	}
	contentType := part.Header.Get("Content-Type")
	if contentType == "" {
		return true
	}
	_, attrs, err := mime.ParseMediaType(contentType)
	return err == nil && isUTF8(attrs)
}

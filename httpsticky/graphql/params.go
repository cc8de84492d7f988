package graphql

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"
)

// params are what of a GraphQL request decides what it runs. Empty strings and null
// are as good as absent, as servers have it.
type params struct {
	query         string
	operationName string
	ids           []string // of a persisted document
	id            string   // "id": one too, or just a number that clients give to requests of a batch
}

const (
	keyQuery         = "query"
	keyOperationName = "operationName"
	keyExtensions    = "extensions"
	keyDocumentID    = "documentId" // GraphQL over HTTP, appendix A
	keyDocID         = "doc_id"     // Relay
	keyID            = "id"

	keyPersistedQuery = "persistedQuery" // of Apollo, in extensions
	keySHA256Hash     = "sha256Hash"
)

var (
	paramKeys          = []string{keyQuery, keyOperationName, keyExtensions, keyDocumentID, keyDocID, keyID}
	extensionKeys      = []string{keyPersistedQuery}
	persistedQueryKeys = []string{keySHA256Hash}
)

// paramsOfObject reads the parameters from a JSON object.
func paramsOfObject(object []byte) (params, Reason) {
	var p params
	if object[0] != '{' {
		return p, Malformed
	}
	seen := keys{known: paramKeys}
	for key, value := range members(object) {
		name, ok := seen.take(key)
		switch {
		case !ok:
			return p, Ambiguous
		case name == "":
		case name == keyExtensions:
			if why := p.extensions(value); why != None {
				return p, why
			}
		case name == keyID && value[0] != '"':
			// A number: no server looks a document up by it.
		default:
			s, ok := str(value)
			if !ok {
				return p, Malformed
			}
			p.set(name, s)
		}
	}
	return p, None
}

// paramsOfURL reads the parameters from a URL's query. A server may read what does
// not parse in more than one way (semicolons are separators to some).
func paramsOfURL(query string) (params, Reason) {
	var p params
	values, err := url.ParseQuery(query)
	if err != nil {
		return p, Malformed
	}
	seen := keys{known: paramKeys}
	for key, all := range values {
		name, ok := seen.take(key)
		if name == "" && ok {
			continue
		}
		if !ok || len(all) != 1 {
			return p, Ambiguous
		}
		text := all[0]
		if !utf8.ValidString(text) {
			return p, Malformed
		}
		if name != keyExtensions {
			p.set(name, text)
			continue
		}
		if text == "" {
			continue
		}
		value, ok := wellFormed([]byte(text))
		if !ok {
			return p, Malformed
		}
		if why := p.extensions(value); why != None {
			return p, why
		}
	}
	return p, None
}

func (p *params) set(name, s string) {
	switch name {
	case keyQuery:
		p.query = s
	case keyOperationName:
		p.operationName = s
	case keyID:
		p.id = s
	default:
		p.addID(s)
	}
}

func (p *params) addID(id string) {
	if id != "" && !slices.Contains(p.ids, id) {
		p.ids = append(p.ids, id)
	}
}

// extensions reads {"persistedQuery": {"sha256Hash": "…"}}.
func (p *params) extensions(value []byte) Reason {
	persisted, why := member(value, extensionKeys)
	if persisted == nil || why != None {
		return why
	}
	hash, why := member(persisted, persistedQueryKeys)
	if hash == nil || why != None {
		return why
	}
	s, ok := str(hash)
	if !ok {
		return Malformed
	}
	p.addID(s)
	return None
}

// member returns the value of the one known key of an object, nil if it is not there
// or the object is null.
func member(object []byte, known []string) (found []byte, why Reason) {
	if object[0] == 'n' {
		return nil, None
	}
	if object[0] != '{' {
		return nil, Malformed
	}
	seen := keys{known: known}
	for key, value := range members(object) {
		name, ok := seen.take(key)
		if !ok {
			return nil, Ambiguous
		}
		if name != "" {
			found = value
		}
	}
	return found, None
}

// hashedBy tells whether id is the hash of document, as Apollo writes it or with the
// prefix of GraphQL over HTTP, appendix A: then they are one document, whoever has
// stored it.
func hashedBy(document, id string) bool {
	id = strings.TrimPrefix(id, "sha256:")
	if len(id) != 2*sha256.Size {
		return false
	}
	sum := sha256.Sum256([]byte(document))
	return hex.EncodeToString(sum[:]) == id
}

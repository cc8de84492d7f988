package graphql_test

import (
	"encoding/json"
	"net/http"
	"strings"
)

// The servers of this file are models of how handlers read a request and choose an
// operation. They share no code with the package, nor with its parser: whatever one
// of them would run as a mutation must not have been called a query.

// request is what a server makes of a request.
type request struct {
	Query         string
	OperationName string
}

// readers are the ways in which servers read a JSON body. They differ for keys that
// are there twice or in another case, and for what follows the first value.
var readers = []func(body []byte) []request{
	func(body []byte) []request { // encoding/json into a struct: the last key, in any case; the first value
		var one request
		if json.NewDecoder(strings.NewReader(string(body))).Decode(&one) == nil {
			return []request{one}
		}
		var many []request
		if json.NewDecoder(strings.NewReader(string(body))).Decode(&many) == nil {
			return many
		}
		return nil
	},
	func(body []byte) []request { // a map: the last key, exactly
		var one map[string]any
		if json.Unmarshal(body, &one) == nil {
			return []request{fromMap(one)}
		}
		var many []map[string]any
		if json.Unmarshal(body, &many) == nil {
			var all []request
			for _, m := range many {
				all = append(all, fromMap(m))
			}
			return all
		}
		return nil
	},
	func(body []byte) []request { // a stream of tokens: the first key
		dec := json.NewDecoder(strings.NewReader(string(body)))
		if t, err := dec.Token(); err != nil || t != json.Delim('{') {
			return nil
		}
		first := map[string]any{}
		for dec.More() {
			key, err := dec.Token()
			if err != nil {
				return nil
			}
			var value any
			if dec.Decode(&value) != nil {
				return nil
			}
			if _, ok := first[key.(string)]; !ok {
				first[key.(string)] = value
			}
		}
		return []request{fromMap(first)}
	},
}

func fromMap(m map[string]any) request {
	var r request
	r.Query, _ = m["query"].(string)
	r.OperationName, _ = m["operationName"].(string)
	return r
}

// fromURL reads a URL: the first of each parameter, as r.FormValue does, and the last.
func fromURL(req *http.Request) []request {
	var first, last request
	for key, values := range req.URL.Query() {
		switch key {
		case "query":
			first.Query, last.Query = values[0], values[len(values)-1]
		case "operationName":
			first.OperationName, last.OperationName = values[0], values[len(values)-1]
		}
	}
	return []request{first, last}
}

// runs tells the keyword of the operation that a server runs; "" for none. It
// validates nothing but the choice of the operation.
func (r request) runs() string {
	var only string
	ops := topLevel(r.Query)
	for _, op := range ops {
		keyword, name, _ := strings.Cut(op, " ")
		if name == r.OperationName {
			return keyword
		}
		only = keyword
	}
	if len(ops) == 1 && r.OperationName == "" {
		return only
	}
	return ""
}

// topLevel returns keyword and name of the operations of a document that is known to
// be one, in order. It skips comments and strings, counts brackets, and takes the
// words outside of them, nothing else.
func topLevel(document string) (ops []string) {
	var words []string // since the last definition
	depth := 0
	for i := 0; i < len(document); {
		rest := document[i:]
		switch c := rest[0]; {
		case c == '#':
			if end := strings.IndexAny(rest, "\r\n"); end >= 0 {
				i += end
			} else {
				i = len(document)
			}
			continue
		case strings.HasPrefix(rest, `"""`):
			i += 3
			for i < len(document) && !strings.HasPrefix(document[i:], `"""`) {
				if strings.HasPrefix(document[i:], `\"""`) {
					i += 3
				}
				i++
			}
			i += 3
			continue
		case c == '"':
			for i++; i < len(document) && document[i] != '"'; i++ {
				if document[i] == '\\' {
					i++
				}
			}
		case strings.IndexByte("{([", c) >= 0:
			if c == '{' && depth == 0 && (len(words) == 0 || words[0] != "fragment") {
				switch {
				case len(words) == 0:
					ops = append(ops, "query ")
				case len(words) > 1:
					ops = append(ops, words[0]+" "+words[1])
				default:
					ops = append(ops, words[0]+" ")
				}
			}
			depth++
		case strings.IndexByte("})]", c) >= 0:
			depth--
			if c == '}' && depth == 0 {
				words = nil
			}
		case c == '@' && depth == 0:
			words = append(words, "") // what follows is not the operation's name
		case word(c) && depth == 0:
			end := 1
			for end < len(rest) && word(rest[end]) {
				end++
			}
			words = append(words, rest[:end])
			i += end
			continue
		}
		i++
	}
	return ops
}

func word(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/validator/rules"
)

var schema = gqlparser.MustLoadSchema(&ast.Source{Name: "notes.graphql", Input: `
	type Note { slot: Int! value: Int! }
	type Query { notes: [Note!]! }
	type Mutation { setNote(slot: Int!, value: Int!): Note! }
`})

var validation = rules.NewDefaultRules()

// graphQLRequest is a request as GraphQL over HTTP has it.
type graphQLRequest struct {
	Query         string         `json:"query"`
	OperationName string         `json:"operationName"`
	Variables     map[string]any `json:"variables"`
}

// graphQL answers queries and mutations. Everything is a POST there, or may be, so
// that the verb doesn't tell what writes.
func (n notes) graphQL(w http.ResponseWriter, r *http.Request) {
	req, err := graphQLOf(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	op, err := req.operation()
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	data := make(map[string]any)
	for _, s := range op.SelectionSet {
		field, ok := s.(*ast.Field)
		if !ok {
			http.Error(w, "fragments are not supported", http.StatusBadRequest)
			return
		}
		if data[field.Alias], err = n.resolve(r.Context(), owner(r), field, req.Variables); err != nil {
			failed(w, err)
			return
		}
	}
	answer(w, map[string]any{"data": data})
}

func graphQLOf(r *http.Request) (graphQLRequest, error) {
	var req graphQLRequest
	if r.Method == http.MethodPost {
		return req, json.NewDecoder(r.Body).Decode(&req)
	}
	req.Query, req.OperationName = r.FormValue("query"), r.FormValue("operationName")
	if text := r.FormValue("variables"); text != "" {
		return req, json.Unmarshal([]byte(text), &req.Variables)
	}
	return req, nil
}

func (req graphQLRequest) operation() (*ast.OperationDefinition, error) {
	doc, err := gqlparser.LoadQueryWithRules(schema, req.Query, validation)
	if err != nil {
		return nil, err
	}
	if op := doc.Operations.ForName(req.OperationName); op != nil {
		return op, nil
	}
	return nil, errors.New("no such operation")
}

func (n notes) resolve(ctx context.Context, owner string, field *ast.Field, variables map[string]any) (any, error) {
	switch field.Name {
	case "notes":
		found, err := n.of(ctx, owner)
		list := make([]map[string]any, 0, len(found))
		for _, note := range found {
			list = append(list, selected(field, note))
		}
		return list, err
	case "setNote":
		args := field.ArgumentMap(variables)
		slot, err1 := number(args["slot"])
		value, err2 := number(args["value"])
		if err := errors.Join(err1, err2); err != nil {
			return nil, err
		}
		note := Note{int(slot), value}
		return selected(field, note), n.set(ctx, owner, note)
	default:
		return nil, fmt.Errorf("no resolver of %s", field.Name)
	}
}

// number reads an integer, of the text or of the variables.
func number(v any) (int64, error) {
	switch v := v.(type) {
	case int64:
		return v, nil
	case float64:
		return int64(v), nil
	default:
		return 0, fmt.Errorf("%v is not a number", v)
	}
}

// selected are the fields of a note that were asked for.
func selected(field *ast.Field, note Note) map[string]any {
	out := make(map[string]any)
	for _, s := range field.SelectionSet {
		switch f, _ := s.(*ast.Field); {
		case f == nil:
		case f.Name == "slot":
			out[f.Alias] = note.Slot
		case f.Name == "value":
			out[f.Alias] = note.Value
		}
	}
	return out
}

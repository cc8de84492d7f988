module github.com/sqlreplicated/replicated/httpsticky/graphql

go 1.26.0

require github.com/vektah/gqlparser/v2 v2.5.64

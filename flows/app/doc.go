// Package app is a small web application with a database behind it, as one
// process of several: users keep numbered notes, by forms, by a JSON API, or by
// GraphQL.
//
// The handlers know nothing of replicas. Whether a user's request sees what the
// user wrote by an earlier one, on another process, is the business of what is
// around them, see [Sticky].
package app

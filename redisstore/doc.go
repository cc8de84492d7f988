// Package redisstore keeps the tokens of package httpsticky in Redis, or in a
// server compatible with it, for applications that run as several processes.
//
//	client := redis.NewClient(&redis.Options{Addr: "redis:6379", ContextTimeoutEnabled: true})
//	store, err := redisstore.New(ctx, redisstore.Options{Client: client})
//	if err != nil {
//		return err
//	}
//	handler, err := httpsticky.Handler(mux, httpsticky.Options{Store: store, …})
//
// # What is kept
//
// Each key has a sorted set of tokens, scored by the time at which they end, by
// the server's clock. Saving adds to it, in one script, so that writers do not
// overwrite each other; a set of more than a few is replaced by its union. Keys
// are hashed: what names users or tenants is not in Redis, nor are keys or tokens
// in errors.
//
// The keys are spread over 256 buckets, which a Redis Cluster spreads over its
// slots by hash tags ({b17}). Each call runs one script for each bucket, all at
// once.
//
// # What is lost
//
// A store that has lost what it was given looks like one to which nothing was
// given. So each bucket has an epoch: since when, by the server's clock, this
// primary in this run is known to have kept all of it. It is of the replication
// ID that each primary draws when it starts and when it is promoted
// (master_replid of INFO, see "Replication ID explained" in
// https://redis.io/docs/latest/operate/oss_and_stack/management/replication/).
// A restart, with old data, new data or none, a flush, a failover to a copy that
// lagged: each makes the epoch a new one, and httpsticky reads fresh until
// whatever may have been lost would have ended. A replica answers nothing: a
// client that has been led to one gets an error.
//
// What is evicted would leave no trace. New therefore refuses a server whose
// maxmemory-policy is not noeviction, and each Store looks again once a minute.
//
// # What is not noticed
//
// Somebody who deletes or renames single keys; a primary that goes on taking
// writes long after another one has been promoted (see min-replicas-to-write in
// docs/stores.md); a clock of the Redis server that is set forward by more than
// httpsticky's tokens have to spare, 5 seconds or more; a proxy or a client-side
// ring that gives keys to another server for a while and back.
package redisstore

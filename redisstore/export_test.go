package redisstore

import "time"

// Limits that tests reach.
const (
	CrowdedToRead = crowdedToRead
	CrowdedToSave = crowdedToSave
	MaxTokens     = maxTokens
	Buckets       = buckets
)

// LookAgain makes the next call ask the servers for their policy.
func (s *Store) LookAgain() {
	s.policy.mu.Lock()
	defer s.policy.mu.Unlock()
	s.policy.next = time.Time{}
}

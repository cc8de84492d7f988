package replicatedtest

import (
	"fmt"
	"strconv"
	"testing"
)

// redisSlots is how many slots a Redis Cluster has.
const redisSlots = 16384

// StartRedisCluster starts a Redis Cluster of so many primaries without
// replicas, which have an equal part of the slots each. It ends with the test,
// and is skipped as [StartRedis] says. cfg.Follow must be "".
func StartRedisCluster(tb testing.TB, primaries int, cfg RedisConfig) []*Redis {
	tb.Helper()
	RequireRedis(tb)
	var members []*Redis
	for range primaries {
		r, err := newRedis(cfg, true)
		tb.Cleanup(func() { r.close(tb) })
		if err == nil {
			err = r.Start()
		}
		if err != nil {
			tb.Fatalf("replicatedtest: Redis Cluster: %v\n%s", err, r.log())
		}
		members = append(members, r)
	}
	if err := joinRedis(members); err != nil {
		tb.Fatalf("replicatedtest: Redis Cluster: %v", err)
	}
	return members
}

func joinRedis(members []*Redis) error {
	for i, r := range members {
		// Numbers of their own, so that they agree whose slots are whose.
		if _, err := r.Do("CLUSTER", "SET-CONFIG-EPOCH", strconv.Itoa(i+1)); err != nil {
			return err
		}
		first, end := i*redisSlots/len(members), (i+1)*redisSlots/len(members)
		if _, err := r.Do("CLUSTER", "ADDSLOTSRANGE", strconv.Itoa(first), strconv.Itoa(end-1)); err != nil {
			return err
		}
		if i == 0 {
			continue
		}
		one := members[0]
		if _, err := r.Do("CLUSTER", "MEET", "127.0.0.1", strconv.Itoa(one.port.number), strconv.Itoa(one.bus.number)); err != nil {
			return err
		}
	}
	for _, r := range members {
		for _, line := range []string{"cluster_state:ok", fmt.Sprintf("cluster_known_nodes:%d", len(members)), fmt.Sprintf("cluster_size:%d", len(members))} {
			if err := r.waitFor(line, "CLUSTER", "INFO"); err != nil {
				return err
			}
		}
	}
	return nil
}

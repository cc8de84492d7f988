-- Adds the token ARGV[1], for ARGV[2] milliseconds, to each further key. Returns
-- for how long all has been kept, and how many tokens the fullest of them has.
local fullest = 0
for i = 2, #KEYS do
	-- First: a full server refuses it only as long as the script has not written.
	redis.call('ZADD', KEYS[i], 'GT', string.format('%.0f', now + ARGV[2]), ARGV[1])
	redis.call('ZREMRANGEBYSCORE', KEYS[i], '-inf', string.format('%.0f', now))
	local last = redis.call('ZREVRANGE', KEYS[i], 0, 0, 'WITHSCORES')
	redis.call('PEXPIREAT', KEYS[i], string.format('%.0f', tonumber(last[2])))
	fullest = math.max(fullest, redis.call('ZCARD', KEYS[i]))
end
return {kept, fullest}

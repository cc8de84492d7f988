-- Returns for how long all has been kept, and the tokens of each further key,
-- at most ARGV[1] of each.
local answer = {kept}
for i = 2, #KEYS do
	answer[i] = redis.call('ZRANGEBYSCORE', KEYS[i], string.format('(%.0f', now), '+inf', 'LIMIT', 0, ARGV[1])
end
return answer

-- Puts the token ARGV[1] in place of the further ones in KEYS[1], whose union it
-- is. Those that are not there have ended, or are part of another union. It
-- lives as long as the one of them that lives longest.
local last
for i = 2, #ARGV do
	local score = redis.call('ZSCORE', KEYS[1], ARGV[i])
	if score and (not last or tonumber(score) > tonumber(last)) then
		last = score
	end
end
if not last then
	return 0
end
-- First: a full server refuses it only as long as the script has not written.
redis.call('ZADD', KEYS[1], 'GT', last, ARGV[1])
for i = 2, #ARGV do
	if ARGV[i] ~= ARGV[1] then
		redis.call('ZREM', KEYS[1], ARGV[i])
	end
end
return 1

-- Common to the scripts of a bucket, whose epoch is KEYS[1].
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

-- whole returns for how many milliseconds this primary is known to have kept all
-- that the bucket was given, -1 if that begins now; nothing on a replica.
local function whole()
	local info = redis.call('INFO', 'replication')
	local id = string.match(info, '\nmaster_replid:(%x+)')
	if not id or not string.find(info, '\nrole:master', 1, true) then
		return nil
	end
	local of, since = string.match(redis.call('GET', KEYS[1]) or '', '^(%x+) (%d+)$')
	since = tonumber(since)
	-- A beginning in the future is of a clock that has been set back.
	if of ~= id or since > now then
		redis.call('SET', KEYS[1], id .. ' ' .. string.format('%.0f', now))
		return -1
	end
	return now - since
end

local kept = whole()
if not kept then
	-- Clients leave a connection on which they read this word.
	return redis.error_reply('READONLY this server is a replica')
end

-- Lets a hold last longer. ARGV: .., key, token, time to live.
local key = ARGV[3]
local hold = get(KEYS[3], key)
if not hold then
  return reply('none', {})
end
if hold.token == tonumber(ARGV[4]) and hold.state == 'confirming' then
  return reply('confirming', {}, hold)
end
if hold.token ~= tonumber(ARGV[4]) or hold.state ~= 'held' or hold.expires <= now then
  return reply('known', {}, hold)
end
hold.expires = math.max(hold.expires, now + tonumber(ARGV[5]))
put(KEYS[3], key, hold)
redis.call('ZADD', KEYS[5], hold.expires, key)
return reply('done', {}, hold)

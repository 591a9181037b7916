-- Grants an entity to a holder, or puts the holder into the queue.
-- KEYS: incarnation, counter, lock, queue, waits.
-- ARGV: the epoch that the client has checked, holder, lease in ms, wait in ms, highest counter.
local replid = string.match(redis.call('INFO', 'replication'), 'master_replid:(%x+)') or ''
local known = redis.call('MGET', KEYS[1], KEYS[3])
local epoch, holder, lease, wait = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
if known[1] ~= epoch .. ':' .. replid then
  -- A server that was a replica in between may lack counters that were given out, and a missing incarnation means that all was lost.
  local begun, begun_with = string.match(known[1] or '', '^(%d+):(%x+)$')
  return { begun_with == replid and 'unchecked' or 'stale', begun or '0' }
end
local lock = known[2]
if lock then
  local of_epoch, counter, name = string.match(lock, '^(%d+):(%d+):(.*)$')
  if name == holder then
    redis.call('PEXPIRE', KEYS[3], lease)
    return { 'granted', of_epoch, counter }
  end
end
local function now()
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end
local first = redis.call('ZRANGE', KEYS[4], 0, 0)[1]
-- A waiter that does not ask any more loses its place when its turn has come, and not before.
while not lock and first and first ~= holder do
  local asks_until = redis.call('HGET', KEYS[5], first)
  if asks_until and tonumber(asks_until) >= now() then
    break
  end
  redis.call('ZREM', KEYS[4], first)
  redis.call('HDEL', KEYS[5], first)
  first = redis.call('ZRANGE', KEYS[4], 0, 0)[1]
end
if not lock and (not first or first == holder) then
  local counter = redis.call('INCR', KEYS[2])
  if counter > tonumber(ARGV[5]) then
    return { 'stale', epoch }
  end
  if first then
    redis.call('ZREM', KEYS[4], holder)
    redis.call('HDEL', KEYS[5], holder)
  end
  counter = string.format('%.0f', counter)
  redis.call('SET', KEYS[3], epoch .. ':' .. counter .. ':' .. holder, 'PX', lease)
  return { 'granted', epoch, counter }
end
if not redis.call('ZSCORE', KEYS[4], holder) then
  local last = redis.call('ZRANGE', KEYS[4], -1, -1, 'WITHSCORES')[2]
  redis.call('ZADD', KEYS[4], tonumber(last or '0') + 1, holder)
end
redis.call('HSET', KEYS[5], holder, string.format('%.0f', now() + wait))
for _, key in ipairs({ KEYS[4], KEYS[5] }) do
  if redis.call('PTTL', key) < wait then
    redis.call('PEXPIRE', key, wait)
  end
end
local ahead = redis.call('ZRANK', KEYS[4], holder)
local left = -1
if lock then
  ahead = ahead + 1
  left = redis.call('PTTL', KEYS[3])
end
return { 'waits', tostring(ahead), tostring(left) }

-- Grants entities to holders, or puts the holders into the queues. One call may ask for many.
-- KEYS, for each: incarnation, counter, lock, queue, waits.
-- ARGV, for each: the epoch that the client has checked, holder, lease in ms, wait in ms.
-- Answers three words for each.
local COUNTER_MAX = 2 ^ 40 - 1
local replid = string.match(redis.call('INFO', 'replication'), 'master_replid:(%x+)') or ''

-- The incarnations and the locks, by their keys, and whether there may be queues. A command costs more than what it does, so each reads for all.
local value_keys, queue_keys = {}, {}
for n = 1, #KEYS, 5 do
  table.insert(value_keys, KEYS[n])
  table.insert(value_keys, KEYS[n + 2])
  table.insert(queue_keys, KEYS[n + 3])
end
local values, incarnations = {}, {}
for n, value in ipairs(redis.call('MGET', unpack(value_keys))) do
  values[value_keys[n]] = value
end
local has_queues = redis.call('EXISTS', unpack(queue_keys)) > 0

-- What the key of an incarnation has if this epoch was begun on this server.
local function incarnation_of(epoch)
  incarnations[epoch] = incarnations[epoch] or epoch .. ':' .. replid
  return incarnations[epoch]
end

local function now()
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end

local function first_of(queue)
  return has_queues and redis.call('ZRANGE', queue, 0, 0)[1]
end

local function put_into_queue(lock, lock_key, queue, waits, holder, wait)
  has_queues = true
  if not redis.call('ZSCORE', queue, holder) then
    local last = redis.call('ZRANGE', queue, -1, -1, 'WITHSCORES')[2]
    redis.call('ZADD', queue, tonumber(last or '0') + 1, holder)
  end
  redis.call('HSET', waits, holder, string.format('%d', now() + wait))
  for _, key in ipairs({ queue, waits }) do
    if redis.call('PTTL', key) < wait then
      redis.call('PEXPIRE', key, wait)
    end
  end
  local ahead = redis.call('ZRANK', queue, holder)
  local left = -1
  if lock then
    ahead = ahead + 1
    left = redis.call('PTTL', lock_key)
  end
  return 'waits', ahead, left
end

local function acquire(incarnation, counter_key, lock_key, queue, waits, epoch, holder, lease, wait)
  if values[incarnation] ~= incarnation_of(epoch) then
    local begun, begun_with = string.match(values[incarnation] or '', '^(%d+):(%x+)$')
    -- A server that was a replica in between may lack counters that were given out, and a missing incarnation means that all was lost.
    return begun_with == replid and 'unchecked' or 'stale', begun or '0', ''
  end
  local lock = values[lock_key]
  if lock then
    local of_epoch, counter, name = string.match(lock, '^(%d+):(%d+):(.*)$')
    if name == holder then
      redis.call('PEXPIRE', lock_key, lease)
      return 'granted', of_epoch, counter
    end
  end
  local first = first_of(queue)
  -- A waiter that does not ask any more loses its place when its turn has come, and not before.
  while not lock and first and first ~= holder do
    local asks_until = redis.call('HGET', waits, first)
    if asks_until and tonumber(asks_until) >= now() then
      break
    end
    redis.call('ZREM', queue, first)
    redis.call('HDEL', waits, first)
    first = first_of(queue)
  end
  if lock or first and first ~= holder then
    return put_into_queue(lock, lock_key, queue, waits, holder, tonumber(wait))
  end
  local counter = redis.call('INCR', counter_key)
  if counter > COUNTER_MAX then
    return 'stale', epoch, ''
  end
  if first then
    redis.call('ZREM', queue, holder)
    redis.call('HDEL', waits, holder)
  end
  values[lock_key] = string.format('%s:%d:%s', epoch, counter, holder)
  redis.call('SET', lock_key, values[lock_key], 'PX', lease)
  return 'granted', epoch, counter
end

local answers = {}
for n = 0, #KEYS / 5 - 1 do
  local k, a, w = 5 * n, 4 * n, 3 * n
  answers[w + 1], answers[w + 2], answers[w + 3] = acquire(
    KEYS[k + 1], KEYS[k + 2], KEYS[k + 3], KEYS[k + 4], KEYS[k + 5],
    ARGV[a + 1], ARGV[a + 2], ARGV[a + 3], ARGV[a + 4]
  )
end
return answers

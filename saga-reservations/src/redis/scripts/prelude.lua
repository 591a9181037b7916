-- Stands before each script.
-- KEYS: incarnation, counter, holds, resources, expiry, marks, ended, idle, keys, loaded.
-- ARGV: the epoch that the client has checked, how far a test moved the clock, .., run_id of this server if the client knows it.
-- Times are in microseconds. They and the tokens are below 2^53, where Lua's numbers are exact.
local run = ARGV[#ARGV]
if run == '' then
  run = string.match(redis.call('INFO', 'server'), 'run_id:(%x+)')
end
local epoch = ARGV[1]
local incarnation = redis.call('GET', KEYS[1])
if incarnation ~= epoch .. ':' .. run then
  local begun, begun_on = string.match(incarnation or '', '^(%d+):(%x+)$')
  -- Another server may lack counters that were given out, and a missing incarnation means that all was lost.
  if begun_on ~= run then
    return { 'stale', begun or '0' }
  end
  return { 'unchecked', begun }
end
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2]) + tonumber(ARGV[2])

local function text(number)
  return string.format('%d', number)
end

local function get(hash, name)
  local packed = redis.call('HGET', hash, name)
  return packed and cmsgpack.unpack(packed)
end

local function put(hash, name, value)
  redis.call('HSET', hash, name, cmsgpack.pack(value))
end

-- A resource is read once by a script. What is changed in it must be put back.
local resources = {}

local function resource_of(name)
  if not resources[name] then
    resources[name] = get(KEYS[4], name)
  end
  return resources[name]
end

-- Lines are a list: name, quantity, name, quantity, ..
local function change_held(lines, sign)
  for i = 1, #lines, 2 do
    local resource = resource_of(lines[i])
    if resource then
      resource.held = resource.held + sign * lines[i + 1]
      put(KEYS[4], lines[i], resource)
      if resource.unique == 1 and resource.held == 0 then
        redis.call('ZADD', KEYS[8], text(now), lines[i])
      end
    end
  end
end

-- Gives the units of a hold that is held or marked back, and remembers how it ended.
local function finish(key, hold, state)
  change_held(hold.lines, -1)
  redis.call('ZREM', KEYS[5], key)
  redis.call('ZREM', KEYS[6], key)
  hold.state, hold.changed, hold.next = state, now, 0
  if state == 'moved' then
    -- SQL has the rest.
    hold.lines = {}
  end
  put(KEYS[3], key, hold)
  redis.call('ZADD', KEYS[7], text(now), key)
end

-- The keys that SQL may have are the bits of a Bloom filter: two of 2^27 for each.
local function bits_of(key)
  local hash = redis.sha1hex(key)
  return tonumber(string.sub(hash, 1, 7), 16) % 134217728, tonumber(string.sub(hash, 8, 14), 16) % 134217728
end

-- SQL has these keys, or will.
local function note_keys(keys)
  for i = 1, #keys, 500 do
    local command = { 'BITFIELD', KEYS[9] }
    for j = i, math.min(i + 499, #keys) do
      for _, bit in ipairs({ bits_of(keys[j]) }) do
        local count = #command
        command[count + 1], command[count + 2], command[count + 3], command[count + 4] = 'SET', 'u1', text(bit), '1'
      end
    end
    redis.call(unpack(command))
  end
end

-- Whether SQL may have this key. Only in an epoch in which all keys of SQL are loaded it may not.
local function may_be_in_sql(key)
  if redis.call('GET', KEYS[10]) ~= epoch then
    return true
  end
  local one, two = bits_of(key)
  return redis.call('GETBIT', KEYS[9], one) == 1 and redis.call('GETBIT', KEYS[9], two) == 1
end

local function expire_overdue(limit)
  local keys = redis.call('ZRANGEBYSCORE', KEYS[5], '-inf', text(now), 'LIMIT', 0, limit)
  for _, key in ipairs(keys) do
    finish(key, get(KEYS[3], key), 'expired')
  end
  return #keys
end

-- Until a lower capacity is in SQL it counts already.
local function capacity_of(resource)
  if resource.ceiling and resource.ceiling_until > now then
    return math.min(resource.capacity, resource.ceiling)
  end
  return resource.capacity
end

local function taken_of(resource)
  return resource.confirmed + resource.elsewhere + resource.held
end

-- What is in the way of taking these lines, or nothing.
local function obstacle(lines)
  for i = 1, #lines, 2 do
    local resource = resource_of(lines[i])
    if not resource or resource.epoch ~= epoch then
      return 'load'
    end
  end
  for _ = 1, 16 do
    local lacks = false
    for i = 1, #lines, 2 do
      local resource = resource_of(lines[i])
      lacks = lacks or capacity_of(resource) - taken_of(resource) < lines[i + 1]
    end
    if not lacks then
      return nil
    end
    if expire_overdue(64) == 0 then
      return 'short'
    end
  end
  return 'again'
end

local function next_token()
  local counter = redis.call('INCR', KEYS[2])
  return counter < 4294967296 and tonumber(epoch) * 4294967296 + counter
end

-- An answer: a word, the time, what is known of these resources, and a hold if there is one.
local function reply(word, names, hold)
  local words = { word, text(now), '0' }
  for _, name in ipairs(names) do
    local resource = resource_of(name)
    if resource and resource.epoch == epoch then
      for _, field in ipairs({
        name, text(capacity_of(resource)), text(resource.confirmed), text(resource.elsewhere + resource.held),
        tostring(resource.unique),
      }) do
        words[#words + 1] = field
      end
    end
  end
  words[3] = tostring((#words - 3) / 5)
  if hold and hold.state ~= 'moved' then
    local count = #words
    words[count + 1], words[count + 2], words[count + 3] = hold.state, text(hold.token), text(hold.next)
    words[count + 4], words[count + 5], words[count + 6] = text(hold.expires), text(hold.changed), tostring(hold.unique)
    for i = 1, #hold.lines, 2 do
      words[#words + 1], words[#words + 2] = hold.lines[i], text(hold.lines[i + 1])
    end
  end
  return words
end

local function names_of(lines)
  local names = {}
  for i = 1, #lines, 2 do
    table.insert(names, lines[i])
  end
  return names
end

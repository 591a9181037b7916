-- Stands before each script.
-- KEYS: incarnation, counter, holds, resources, expiry, marks, ended, idle, keys, loaded.
-- ARGV: the epoch that the client has checked, how far a test moved the clock, ..
-- Times are in microseconds. They and the tokens are below 2^53, where Lua's numbers are exact, and Redis takes them as they are.
local replid = string.match(redis.call('INFO', 'replication'), 'master_replid:(%x+)')
local epoch = ARGV[1]
local incarnation, counter, loaded = unpack(redis.call('MGET', KEYS[1], KEYS[2], KEYS[10]))
if incarnation ~= epoch .. ':' .. replid then
  local begun, begun_with = string.match(incarnation or '', '^(%d+):(%x+)$')
  -- A server that was a replica in between may lack counters that were given out, and a missing incarnation means that all was
  -- lost.
  if begun_with ~= replid then
    return { 'stale', begun or '0' }
  end
  return { 'unchecked', begun }
end
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2]) + tonumber(ARGV[2])

local function get(hash, name)
  local packed = redis.call('HGET', hash, name)
  return packed and cmsgpack.unpack(packed)
end

local function put(hash, name, value)
  redis.call('HSET', hash, name, cmsgpack.pack(value))
end

-- Calls a command with a long list of arguments, in parts: Lua passes a few thousand at once. An argument in groups of up to four
-- is not torn. Returns what the parts answered, if they answer lists.
local function call_in_parts(command, key, arguments)
  if #arguments <= 1200 then
    return #arguments > 0 and redis.call(command, key, unpack(arguments)) or {}
  end
  local answers = {}
  for i = 1, #arguments, 1200 do
    local part = redis.call(command, key, unpack(arguments, i, math.min(i + 1199, #arguments)))
    for _, answer in ipairs(type(part) == 'table' and part or {}) do
      answers[#answers + 1] = answer
    end
  end
  return answers
end

-- A resource is read once by a script. What is changed in it must be put back.
local resources = {}

local function resource_of(name)
  if not resources[name] then
    resources[name] = get(KEYS[4], name)
  end
  return resources[name]
end

-- Reads several at once.
local function read_resources(names)
  for i, packed in ipairs(call_in_parts('HMGET', KEYS[4], names)) do
    if packed and not resources[names[i]] then
      resources[names[i]] = cmsgpack.unpack(packed)
    end
  end
end

-- Lines are a list: name, quantity, name, quantity, ..
local function change_held(lines, sign)
  for i = 1, #lines, 2 do
    local resource = resource_of(lines[i])
    if resource then
      resource.held = resource.held + sign * lines[i + 1]
      put(KEYS[4], lines[i], resource)
      if resource.unique == 1 and resource.held == 0 then
        redis.call('ZADD', KEYS[8], now, lines[i])
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
  redis.call('ZADD', KEYS[7], now, key)
end

-- The keys that SQL may have are the bits of a Bloom filter: two of 2^27 for each.
local function bits_of(key)
  local hash = redis.sha1hex(key)
  return tonumber(string.sub(hash, 1, 7), 16) % 134217728, tonumber(string.sub(hash, 8, 14), 16) % 134217728
end

-- SQL has these keys, or will.
local function note_keys(keys)
  local sets = {}
  for _, key in ipairs(keys) do
    for _, bit in ipairs({ bits_of(key) }) do
      local count = #sets
      sets[count + 1], sets[count + 2], sets[count + 3], sets[count + 4] = 'SET', 'u1', bit, '1'
    end
  end
  call_in_parts('BITFIELD', KEYS[9], sets)
end

-- Which of these keys SQL may have. Only in an epoch in which all keys of SQL are loaded, it may not have one.
local function may_be_in_sql(keys)
  local gets, answers = {}, {}
  for i, key in ipairs(keys) do
    local count, one, two = 6 * (i - 1), bits_of(key)
    gets[count + 1], gets[count + 2], gets[count + 3] = 'GET', 'u1', one
    gets[count + 4], gets[count + 5], gets[count + 6] = 'GET', 'u1', two
    answers[i] = loaded ~= epoch
  end
  local bits = loaded == epoch and call_in_parts('BITFIELD', KEYS[9], gets) or {}
  for i = 2, #bits, 2 do
    answers[i / 2] = bits[i - 1] == 1 and bits[i] == 1
  end
  return answers
end

local function expire_overdue(limit)
  local keys = redis.call('ZRANGEBYSCORE', KEYS[5], '-inf', now, 'LIMIT', 0, limit)
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

-- Whether SQL must be read before units are taken. A ceiling that is over is one of which no server told the end: SQL may have the
-- lower capacity.
local function must_be_read(resource)
  return not resource or resource.epoch ~= epoch or (resource.ceiling and resource.ceiling_until <= now)
end

local function taken_of(resource)
  return resource.confirmed + resource.elsewhere + resource.held
end

-- How often a script may still look for holds that are over. Redis does nothing else meanwhile.
local sweeps = 16
local nothing_is_over = false

-- The answer where units are lacking. SQL may have confirmed a hold that is marked still: then its units are counted twice.
local function shortage()
  return redis.call('ZCARD', KEYS[6]) > 0 and 'marked' or 'short'
end

-- What is in the way of taking these lines, or nothing.
local function obstacle(lines)
  for i = 1, #lines, 2 do
    if must_be_read(resource_of(lines[i])) then
      return 'load'
    end
  end
  while true do
    local lacks = false
    for i = 1, #lines, 2 do
      local resource = resource_of(lines[i])
      lacks = lacks or capacity_of(resource) - taken_of(resource) < lines[i + 1]
    end
    if not lacks then
      return nil
    elseif nothing_is_over then
      return shortage()
    elseif sweeps == 0 then
      return 'again'
    end
    sweeps = sweeps - 1
    nothing_is_over = expire_overdue(64) == 0
  end
end

-- How many tokens there are in an epoch.
local COUNTERS = 4294967296
counter = tonumber(counter or 0)

local function has_tokens(count)
  return counter + count < COUNTERS
end

-- The script that takes tokens writes the counter.
local function next_token()
  counter = counter + 1
  return tonumber(epoch) * COUNTERS + counter
end

-- An answer: a word, the time, what is known of these resources, and a hold if there is one.
local function reply(word, names, hold)
  local words = { word, now, 0 }
  for _, name in ipairs(names) do
    local resource = resource_of(name)
    if resource and resource.epoch == epoch then
      for _, field in ipairs({
        name, capacity_of(resource), resource.confirmed, resource.elsewhere + resource.held, resource.unique,
      }) do
        words[#words + 1] = field
      end
    end
  end
  words[3] = (#words - 3) / 5
  if hold and hold.state ~= 'moved' then
    local count = #words
    words[count + 1], words[count + 2], words[count + 3] = hold.state, hold.token, hold.next
    words[count + 4], words[count + 5], words[count + 6] = hold.expires, hold.changed, hold.unique
    for i = 1, #hold.lines, 2 do
      words[#words + 1], words[#words + 2] = hold.lines[i], hold.lines[i + 1]
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

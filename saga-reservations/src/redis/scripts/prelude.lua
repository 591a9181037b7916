-- Stands before each script.
-- KEYS: incarnation, counter, holds, resources, expiry, marks, ended, idle.
-- ARGV: the epoch that the client has checked, how far a test moved the clock, .., run_id of this server if the client knows it.
-- Times are in microseconds. They and the tokens are below 2^53, where Lua's numbers are exact.
local run = ARGV[#ARGV]
if run == '' then
  run = string.match(redis.call('INFO', 'server'), 'run_id:(%x+)')
end
local epoch, begun_on = string.match(redis.call('GET', KEYS[1]) or '', '^(%d+):(%x+)$')
-- Another server may lack counters that were given out, and a missing incarnation means that all was lost.
if begun_on ~= run then
  return { 'stale', epoch or '0' }
end
if epoch ~= ARGV[1] then
  return { 'unchecked', epoch }
end
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2]) + tonumber(ARGV[2])

local function text(number)
  return string.format('%.0f', number)
end

local function get(hash, name)
  local packed = redis.call('HGET', hash, name)
  return packed and cmsgpack.unpack(packed)
end

local function put(hash, name, value)
  redis.call('HSET', hash, name, cmsgpack.pack(value))
end

-- Lines are a list: name, quantity, name, quantity, ..
local function change_held(lines, sign)
  for i = 1, #lines, 2 do
    local resource = get(KEYS[4], lines[i])
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
    local resource = get(KEYS[4], lines[i])
    if not resource or resource.epoch ~= epoch then
      return 'load'
    end
  end
  for _ = 1, 16 do
    local lacks = false
    for i = 1, #lines, 2 do
      local resource = get(KEYS[4], lines[i])
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
  local words = { word, text(now), 0 }
  for _, name in ipairs(names) do
    local resource = get(KEYS[4], name)
    if resource and resource.epoch == epoch then
      words[3] = words[3] + 1
      for _, field in ipairs({
        name, text(capacity_of(resource)), text(resource.confirmed), text(resource.elsewhere + resource.held),
        tostring(resource.unique),
      }) do
        table.insert(words, field)
      end
    end
  end
  words[3] = tostring(words[3])
  if hold and hold.state ~= 'moved' then
    for _, field in ipairs({
      hold.state, text(hold.token), text(hold.next), text(hold.expires), text(hold.changed), tostring(hold.unique),
    }) do
      table.insert(words, field)
    end
    for i = 1, #hold.lines, 2 do
      table.insert(words, hold.lines[i])
      table.insert(words, text(hold.lines[i + 1]))
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

-- Holds the lines of each request, all or none, one request after the other. A hold is fresh if SQL does not have its key.
-- ARGV: .., and of each request: key, time to live, whether it is a unique intent, how many lines, name, quantity, ..
-- The answer: `done` if something is held, the time, and for each request how many words it is answered, and these words.
local requests, keys, names = {}, {}, {}
local position, last = 3, #ARGV
while position < last do
  local lines, first = {}, position + 4
  requests[#requests + 1] = {
    key = ARGV[position], ttl = tonumber(ARGV[position + 1]), unique = tonumber(ARGV[position + 2]), lines = lines,
  }
  keys[#keys + 1] = ARGV[position]
  position = first + 2 * tonumber(ARGV[position + 3])
  for i = first, position - 1, 2 do
    lines[i - first + 1], lines[i - first + 2] = ARGV[i], tonumber(ARGV[i + 1])
    names[#names + 1] = ARGV[i]
  end
end
if not has_tokens(#requests) then
  return { 'stale', epoch }
end
read_resources(names)
local known, in_sql = call_in_parts('HMGET', KEYS[3], keys), may_be_in_sql(keys)

-- What is in the way of a request, or nothing.
local function obstacle_of(request)
  local obstacle = obstacle(request.lines)
  for i = 1, request.unique == 1 and #request.lines or 0, 2 do
    if not obstacle and resource_of(request.lines[i]).unique == 0 then
      obstacle = 'short'
    end
  end
  return obstacle
end

-- What is to be written at the end.
local held, holds, expiry, changed, busy = {}, {}, {}, {}, {}

local function hold_lines(request)
  local key, lines = request.key, request.lines
  for i = 1, #lines, 2 do
    local resource = resource_of(lines[i])
    resource.held = resource.held + lines[i + 1]
    changed[lines[i]] = resource
    if resource.unique == 1 then
      busy[#busy + 1] = lines[i]
    end
  end
  local hold = {
    state = 'held', token = next_token(), next = 0, expires = now + request.ttl, changed = now, unique = request.unique,
    lines = lines,
  }
  held[key] = hold
  local count = #holds
  holds[count + 1], holds[count + 2] = key, cmsgpack.pack(hold)
  expiry[count + 1], expiry[count + 2] = hold.expires, key
  return hold
end

local words = { 'none', now }
for i, request in ipairs(requests) do
  local hold = held[request.key] or known[i] and cmsgpack.unpack(known[i])
  local obstacle = not hold and obstacle_of(request)
  local answer
  if hold then
    answer = reply('known', {}, hold)
    if hold.state == 'held' then
      -- The replicas may lack it, because they did not confirm the first time.
      words[1] = 'done'
    end
  elseif obstacle then
    answer = reply(obstacle, names_of(request.lines))
  else
    hold = hold_lines(request)
    answer = in_sql[i] and reply('done', {}, hold) or { 'fresh', hold.token }
  end
  local count = #words + 1
  words[count] = #answer
  for j = 1, #answer do
    words[count + j] = answer[j]
  end
end
if #holds > 0 then
  words[1] = 'done'
  redis.call('SET', KEYS[2], counter)
  local packed = {}
  for name, resource in pairs(changed) do
    packed[#packed + 1], packed[#packed + 2] = name, cmsgpack.pack(resource)
  end
  call_in_parts('HSET', KEYS[4], packed)
  call_in_parts('HSET', KEYS[3], holds)
  call_in_parts('ZADD', KEYS[5], expiry)
  call_in_parts('ZREM', KEYS[8], busy)
end
return words

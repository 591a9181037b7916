-- Holds all lines, or none. A hold is fresh if SQL does not have its key. ARGV: .., key, time to live, whether it is a unique intent, name, quantity, ..
local key, is_unique = ARGV[3], tonumber(ARGV[5])
local known = get(KEYS[3], key)
if known then
  return reply('known', {}, known)
end
local lines = {}
for i = 6, #ARGV - 1, 2 do
  table.insert(lines, ARGV[i])
  table.insert(lines, tonumber(ARGV[i + 1]))
end
local obstacle = obstacle(lines)
if obstacle then
  return reply(obstacle, names_of(lines))
end
for i = 1, #lines, 2 do
  if is_unique == 1 and resource_of(lines[i]).unique == 0 then
    return reply('short', names_of(lines))
  end
end
local token = next_token()
if not token then
  return { 'stale', epoch }
end
change_held(lines, 1)
for i = 1, #lines, 2 do
  if resource_of(lines[i]).unique == 1 then
    redis.call('ZREM', KEYS[8], lines[i])
  end
end
local hold = {
  state = 'held', token = token, next = 0, expires = now + tonumber(ARGV[4]), changed = now, unique = is_unique,
  lines = lines,
}
put(KEYS[3], key, hold)
redis.call('ZADD', KEYS[5], text(hold.expires), key)
if may_be_in_sql(key) then
  return reply('done', {}, hold)
end
return { 'fresh', text(now), '0', text(token), text(hold.expires) }

-- Forgets what ended long ago, and resources of unique intents of which nothing is held.
-- ARGV: .., how long it is kept, how many, how long such resources are kept.
-- The answer: `done`, how many holds only Redis had, and how many holds and how many resources were looked at.
local count = 0
local ended = redis.call('ZRANGEBYSCORE', KEYS[7], '-inf', now - tonumber(ARGV[3]), 'LIMIT', 0, ARGV[4])
for _, key in ipairs(ended) do
  local hold = get(KEYS[3], key)
  if hold and hold.state == 'moved' then
    -- From now on only SQL has it.
    note_keys({ key })
  elseif hold then
    count = count + 1
  end
  redis.call('HDEL', KEYS[3], key)
  redis.call('ZREM', KEYS[7], key)
end
local idle = redis.call('ZRANGEBYSCORE', KEYS[8], '-inf', now - tonumber(ARGV[5]), 'LIMIT', 0, ARGV[4])
for _, name in ipairs(idle) do
  local resource = resource_of(name)
  if resource and resource.held == 0 then
    redis.call('HDEL', KEYS[4], name)
  end
  redis.call('ZREM', KEYS[8], name)
end
return { 'done', count, #ended, #idle }

-- Ends what holders have or wait for. KEYS, for each: lock, queue, waits. ARGV: the holders.
local answers = {}
for n, holder in ipairs(ARGV) do
  local lock, queue, waits = KEYS[3 * n - 2], KEYS[3 * n - 1], KEYS[3 * n]
  redis.call('ZREM', queue, holder)
  redis.call('HDEL', waits, holder)
  if string.match(redis.call('GET', lock) or '', '^%d+:%d+:(.*)$') == holder then
    redis.call('DEL', lock)
  end
  answers[n] = 'withdrawn'
end
return answers

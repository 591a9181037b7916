-- Ends what a holder has or waits for. KEYS: lock, queue, waits. ARGV: holder.
redis.call('ZREM', KEYS[2], ARGV[1])
redis.call('HDEL', KEYS[3], ARGV[1])
if string.match(redis.call('GET', KEYS[1]) or '', '^%d+:%d+:(.*)$') == ARGV[1] then
  redis.call('DEL', KEYS[1])
end
return { 'withdrawn' }

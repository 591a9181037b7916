-- Ends a lock. KEYS: lock. ARGV: the lock as it was granted.
if redis.call('GET', KEYS[1]) == ARGV[1] then
  redis.call('DEL', KEYS[1])
  return { 'released' }
end
return { 'lost' }

-- Lets a lease begin anew. KEYS: lock. ARGV: the lock as it was granted, lease in ms.
if redis.call('GET', KEYS[1]) == ARGV[1] then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  return { 'renewed' }
end
return { 'lost' }

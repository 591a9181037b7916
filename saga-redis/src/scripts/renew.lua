-- Lets leases begin anew. KEYS: the locks. ARGV, for each: the lock as it was granted, lease in ms.
local answers = {}
for n, key in ipairs(KEYS) do
  if redis.call('GET', key) == ARGV[2 * n - 1] then
    redis.call('PEXPIRE', key, ARGV[2 * n])
    answers[n] = 'renewed'
  else
    answers[n] = 'lost'
  end
end
return answers

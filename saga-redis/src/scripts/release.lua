-- Ends locks. KEYS: the locks. ARGV: each as it was granted.
local answers, ended = {}, {}
for n, lock in ipairs(redis.call('MGET', unpack(KEYS))) do
  if lock == ARGV[n] then
    table.insert(ended, KEYS[n])
    answers[n] = 'released'
  else
    answers[n] = 'lost'
  end
end
if #ended > 0 then
  redis.call('DEL', unpack(ended))
end
return answers

-- Notes keys that SQL has. Behind the last ones, Redis knows all keys of SQL in this epoch.
-- ARGV: .., whether they are the last, keys.
local keys = {}
for i = 4, #ARGV do
  keys[i - 3] = ARGV[i]
end
note_keys(keys)
if ARGV[3] == '1' then
  redis.call('SET', KEYS[10], epoch)
end
return reply('done', {})

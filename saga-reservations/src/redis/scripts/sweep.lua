-- Ends holds that are over, says whether the keys of SQL are loaded, and names holds whose confirmation was left behind.
-- ARGV: .., how many, how old a mark must be.
local count = expire_overdue(tonumber(ARGV[3]))
local before = now - tonumber(ARGV[4])
local words = redis.call('ZRANGEBYSCORE', KEYS[6], '-inf', before, 'LIMIT', 0, ARGV[3])
table.insert(words, 1, loaded == epoch and '1' or '0')
table.insert(words, 1, count)
table.insert(words, 1, 'done')
return words

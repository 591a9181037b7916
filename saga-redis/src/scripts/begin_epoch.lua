-- Begins an epoch of a slot on this server, unless a later one was begun.
-- KEYS: incarnation, counter, and what else ends with the epoch. ARGV: epoch.
local epoch = string.match(redis.call('GET', KEYS[1]) or '', '^(%d+):%x+$')
if epoch and tonumber(epoch) >= tonumber(ARGV[1]) then
  return { 'later' }
end
-- Redis names its data anew each time that a server starts, and each time that it becomes the primary.
local replid = string.match(redis.call('INFO', 'replication'), 'master_replid:(%x+)')
redis.call('SET', KEYS[1], ARGV[1] .. ':' .. replid)
redis.call('DEL', unpack(KEYS, 2))
return { 'begun' }

-- Begins an epoch of a slot on this server, unless a later one was begun.
-- KEYS: incarnation, counter, and what else ends with the epoch. ARGV: epoch, run_id of this server if the client knows it.
local epoch = string.match(redis.call('GET', KEYS[1]) or '', '^(%d+):%x+$')
if epoch and tonumber(epoch) >= tonumber(ARGV[1]) then
  return { 'later' }
end
local run = ARGV[2]
if run == '' then
  run = string.match(redis.call('INFO', 'server'), 'run_id:(%x+)')
end
redis.call('SET', KEYS[1], ARGV[1] .. ':' .. run)
redis.call('DEL', unpack(KEYS, 2))
return { 'begun' }

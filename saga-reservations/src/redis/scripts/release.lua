-- Ends a hold. A release that SQL is to have is noted here first.
-- ARGV: .., key, token or nothing.
local key, token = ARGV[3], ARGV[4]
local hold = get(KEYS[3], key)
if not hold or hold.state == 'confirming' or (token == '' and hold.state ~= 'held') then
  note_keys({ key })
end
if not hold then
  return reply('none', {})
end
local is_right = token == '' or hold.token == tonumber(token) or (hold.next ~= 0 and hold.next == tonumber(token))
if is_right and hold.state == 'confirming' then
  return reply('confirming', {}, hold)
end
if not is_right or hold.state ~= 'held' then
  return reply('known', {}, hold)
end
if hold.expires <= now then
  finish(key, hold, 'expired')
else
  finish(key, hold, 'released')
end
return reply('done', {}, hold)

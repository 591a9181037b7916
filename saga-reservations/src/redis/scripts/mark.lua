-- Marks a hold as being confirmed: it does not expire any more. A late one takes its units anew, under its next token.
-- ARGV: .., key, token, whether it may be late.
local key, token, may_be_late = ARGV[3], tonumber(ARGV[4]), ARGV[5] == '1'
local hold = get(KEYS[3], key)
if not hold then
  return reply('none', {})
end
if hold.state == 'confirming' and (hold.token == token or hold.next == token) then
  return reply('done', {}, hold)
end
if hold.token ~= token then
  return reply('known', {}, hold)
end
if hold.state == 'held' and hold.expires <= now then
  finish(key, hold, 'expired')
end
if hold.state == 'expired' and may_be_late then
  local obstacle = obstacle(hold.lines)
  if obstacle then
    return reply(obstacle, names_of(hold.lines), hold)
  end
  if not has_tokens(1) then
    return { 'stale', epoch }
  end
  hold.next = next_token()
  redis.call('SET', KEYS[2], counter)
  change_held(hold.lines, 1)
  redis.call('ZREM', KEYS[7], key)
elseif hold.state ~= 'held' then
  return reply('known', {}, hold)
end
hold.state = 'confirming'
put(KEYS[3], key, hold)
redis.call('ZREM', KEYS[5], key)
redis.call('ZADD', KEYS[6], now, key)
return reply('done', {}, hold)

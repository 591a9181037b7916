-- Notes what SQL has of some resources, and with it what became of a hold there: `moved` if SQL has the reservation now,
-- `released` if SQL bars it, `back` if SQL refused it. `lifted` lets go of a capacity that was to be lower.
-- ARGV: .., key, token, outcome, and for each resource: name, version, capacity, confirmed, held in SQL, whether it is unique.
local key, token, outcome = ARGV[3], ARGV[4], ARGV[5]
local hold = get(KEYS[3], key)
local is_open = hold and (hold.state == 'held' or hold.state == 'confirming')
if is_open and (token == '' or hold.token == tonumber(token)) then
  if outcome == 'moved' or outcome == 'released' then
    finish(key, hold, outcome)
    if outcome == 'released' then
      note_keys({ key })
    end
  elseif outcome == 'back' and hold.state == 'confirming' then
    if hold.next ~= 0 or hold.expires <= now then
      finish(key, hold, 'expired')
    else
      hold.state = 'held'
      put(KEYS[3], key, hold)
      redis.call('ZREM', KEYS[6], key)
      redis.call('ZADD', KEYS[5], hold.expires, key)
    end
  end
end
local names = {}
for i = 6, #ARGV, 6 do
  local name, version = ARGV[i], tonumber(ARGV[i + 1])
  local known = resource_of(name)
  -- What was read earlier must not replace what was read later. A hold of an earlier epoch counts as long as it is here.
  if not known or known.epoch ~= epoch or version >= known.version then
    local resource = {
      epoch = epoch, version = version, capacity = tonumber(ARGV[i + 2]), confirmed = tonumber(ARGV[i + 3]),
      elsewhere = tonumber(ARGV[i + 4]), unique = tonumber(ARGV[i + 5]), held = known and known.held or 0,
    }
    local is_same = known and known.epoch == epoch and version == known.version
    if is_same and outcome ~= 'lifted' and known.ceiling and known.ceiling_until > now then
      resource.ceiling, resource.ceiling_until = known.ceiling, known.ceiling_until
    end
    put(KEYS[4], name, resource)
    resources[name] = resource
    if resource.unique == 1 and resource.held == 0 then
      redis.call('ZADD', KEYS[8], now, name)
    end
  end
  table.insert(names, name)
end
return reply('done', names)

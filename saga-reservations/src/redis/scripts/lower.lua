-- Lets a lower capacity count before it is in SQL. ARGV: .., name, capacity, for how long at most.
local name, capacity = ARGV[3], tonumber(ARGV[4])
local resource = resource_of(name)
if must_be_read(resource) then
  return reply('load', {})
end
while capacity < taken_of(resource) and not nothing_is_over do
  if sweeps == 0 then
    return reply('again', {})
  end
  sweeps = sweeps - 1
  nothing_is_over = expire_overdue(64) == 0
end
if resource.unique == 1 or capacity < taken_of(resource) then
  return reply(shortage(), { name })
end
if capacity < capacity_of(resource) then
  resource.ceiling, resource.ceiling_until = capacity, now + tonumber(ARGV[5])
  put(KEYS[4], name, resource)
end
return reply('done', { name })

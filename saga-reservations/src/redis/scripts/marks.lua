-- Names holds of these resources that are being confirmed, the oldest first. ARGV: .., how many are looked at, names.
local wanted = {}
for i = 4, #ARGV do
  wanted[ARGV[i]] = true
end
local words, keys = { 'done' }, redis.call('ZRANGE', KEYS[6], 0, tonumber(ARGV[3]) - 1)
for i, packed in ipairs(call_in_parts('HMGET', KEYS[3], keys)) do
  local lines = packed and cmsgpack.unpack(packed).lines or {}
  for j = 1, #lines, 2 do
    if wanted[lines[j]] then
      words[#words + 1] = keys[i]
      break
    end
  end
end
return words

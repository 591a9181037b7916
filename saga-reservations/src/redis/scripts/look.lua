-- Reads a hold and a resource. ARGV: .., key, name.
return reply('done', { ARGV[4] }, get(KEYS[3], ARGV[3]))

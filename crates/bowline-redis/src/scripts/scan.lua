-- ARGV: 1 cursor of ZSCAN, 2 about how many
local found = redis.call('ZSCAN', P .. ':x', ARGV[1], 'COUNT', ARGV[2])
local out = { int(now) }
for i = 1, #found[2], 2 do
    if live(found[2][i]) then out[#out + 1] = reply(found[2][i]) end
end
return { found[1], out }

-- ARGV: keys
local out = { int(now) }
for i, key in ipairs(ARGV) do
    out[i + 1] = live(key) and reply(key) or false
end
return out

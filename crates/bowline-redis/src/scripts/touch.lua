-- ARGV: 1 milliseconds to live, then keys
local at = after(ARGV[1])
for i = 2, #ARGV do
    local f = live(ARGV[i])
    if f and tonumber(f.x) < tonumber(at) then expire(ARGV[i], f.g, at) end
end
return 1

-- ARGV: keys
for _, key in ipairs(ARGV) do drop(key) end
return 1

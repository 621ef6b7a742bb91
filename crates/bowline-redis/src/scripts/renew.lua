-- ARGV: 1 node, 2 lease. Returns key, claim, key, claim …
local out = {}
for _, key in ipairs(redis.call('SMEMBERS', P .. ':n:' .. ARGV[1])) do
    local f = live(key)
    if f and f.n == ARGV[1] then
        local due = after(ARGV[2])
        redis.call('HSET', row(key), 'd', due)
        if f.q then redis.call('ZADD', P .. ':q:' .. f.q, due, key) end
        out[#out + 1] = key
        out[#out + 1] = f.c
    end
end
return out

-- ARGV: 1 limit
local count = 0
for _, key in ipairs(redis.call('ZRANGEBYSCORE', P .. ':x', '-inf', int(now), 'LIMIT', 0, ARGV[1])) do
    count = count + drop(key)
end
return count

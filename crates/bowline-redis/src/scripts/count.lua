-- ARGV: 1 group
return redis.call('ZCOUNT', P .. ':y:' .. ARGV[1], '(' .. int(now), '+inf')

-- ARGV: queues
-- Claimed records are due when their lease ends, so they are among those that are due next.
local due, claimed, scheduled, oldest = 0, 0, 0, 0
for _, queue in ipairs(ARGV) do
    local name = P .. ':q:' .. queue
    local waiting = redis.call('ZCOUNT', name, '-inf', int(now))
    due = due + waiting
    if waiting > 0 then
        local first = redis.call('ZRANGEBYSCORE', name, '-inf', int(now), 'WITHSCORES', 'LIMIT', 0, 1)
        oldest = math.max(oldest, now - tonumber(first[2]))
    end
    local rest, taken = redis.call('ZCOUNT', name, '(' .. int(now), '+inf'), 0
    for _, key in ipairs(redis.call('ZRANGEBYSCORE', name, '(' .. int(now), '+inf', 'LIMIT', 0, 1000)) do
        if redis.call('HEXISTS', row(key), 'n') == 1 then taken = taken + 1 end
    end
    claimed = claimed + taken
    scheduled = scheduled + rest - taken
end
return { due, claimed, scheduled, oldest }

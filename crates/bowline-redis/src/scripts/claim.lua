-- ARGV: 1 node, 2 take lapsed records (0, 1), 3 limit, 4 lease, 5 number of queues, the queues,
--   then for each record that may be claimed 16 digits of a claim and 8 random digits of a version
local node, lapsed, limit, queues = ARGV[1], ARGV[2] == '1', tonumber(ARGV[3]), tonumber(ARGV[5])
local found = {}
for q = 1, queues do
    local queue, offset, got = ARGV[5 + q], 0, 0
    while got < limit do
        local page = redis.call('ZRANGEBYSCORE', P .. ':q:' .. queue, '-inf', int(now), 'WITHSCORES', 'LIMIT', offset, limit)
        if #page == 0 then break end
        for i = 1, #page, 2 do
            local f = live(page[i])
            if f and (lapsed or not f.n) and got < limit then
                found[#found + 1] = { key = page[i], due = tonumber(page[i + 1]), old = f, queue = queue }
                got = got + 1
            end
        end
        offset = offset + limit
    end
end
table.sort(found, function(a, b)
    if a.due ~= b.due then return a.due < b.due end
    return a.key < b.key
end)
local out = { int(now) }
for i = 1, math.min(#found, limit) do
    local key, old, random = found[i].key, found[i].old, ARGV[5 + queues + i]
    local count = (tonumber(string.sub(old.e, 1, 8), 16) + 1) % 4294967296
    local version = string.format('%08x', count) .. string.sub(random, 17, 24)
    local lapses = tonumber(old.l) + (old.n and 1 or 0)
    local due = after(ARGV[4])
    redis.call('HSET', row(key), 'e', version, 'n', node, 'c', string.sub(random, 1, 16), 'l', int(lapses), 'd', due)
    if old.n and old.n ~= node then redis.call('SREM', P .. ':n:' .. old.n, key) end
    redis.call('SADD', P .. ':n:' .. node, key)
    redis.call('ZADD', P .. ':q:' .. found[i].queue, due, key)
    out[#out + 1] = reply(key)
end
return out

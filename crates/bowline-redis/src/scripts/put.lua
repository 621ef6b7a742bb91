-- ARGV: 1 key, 2 value, 3 expected version or '', 4 new version, 5 key of the required claim or '', 6 the required claim,
--   7 owner (keep, release, take), 8 node, 9 claim, 10 due (keep, never, in), 11 milliseconds, 12 queue, 13 group,
--   14 milliseconds to live or ''
-- Returns 1 if written, 0 for a conflict, -1 if the claim is lost.
local key = ARGV[1]
if ARGV[5] ~= '' then
    local parent = live(ARGV[5])
    if not parent or parent.c ~= ARGV[6] then return -1 end
end
local old = live(key)
local new
if ARGV[3] == '' then
    if old then return 0 end
    drop(key)
    old = {}
    new = { l = '0', q = ARGV[12] ~= '' and ARGV[12], g = ARGV[13] ~= '' and ARGV[13], x = int(now) }
else
    if not old or old.e ~= ARGV[3] then return 0 end
    new = { l = old.l, q = old.q, g = old.g, x = old.x, n = old.n, c = old.c, d = old.d }
end
if ARGV[7] == 'take' then
    new.n, new.c = ARGV[8], ARGV[9]
elseif ARGV[7] == 'release' then
    new.n, new.c = nil, nil
end
if ARGV[10] == 'in' then
    new.d = after(ARGV[11])
elseif ARGV[10] == 'never' then
    new.d = nil
end
if ARGV[14] ~= '' then new.x = after(ARGV[14]) end

redis.call('HSET', row(key), 'v', ARGV[2], 'e', ARGV[4], 'l', new.l)
for _, field in ipairs({ 'n', 'c', 'd', 'q', 'g' }) do
    if new[field] then
        redis.call('HSET', row(key), field, new[field])
    elseif old[field] then
        redis.call('HDEL', row(key), field)
    end
end
if old.n and old.n ~= new.n then redis.call('SREM', P .. ':n:' .. old.n, key) end
if new.n then redis.call('SADD', P .. ':n:' .. new.n, key) end
if new.q then
    if new.d then
        redis.call('ZADD', P .. ':q:' .. new.q, new.d, key)
    elseif old.d then
        redis.call('ZREM', P .. ':q:' .. new.q, key)
    end
end
if new.g and ARGV[3] == '' then redis.call('ZADD', P .. ':g:' .. new.g, 0, key) end
expire(key, new.g, new.x)
return 1

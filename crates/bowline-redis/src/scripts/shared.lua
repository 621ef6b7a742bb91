-- What all scripts share. KEYS[1] starts the names of all keys; its hash tag puts a namespace on one shard.
--   :r:<key>    hash of a record: v value, e version, n node, c claim, l lapses, d due, q queue, g group, x expires
--   :q:<queue>  keys by due time       :n:<node>  keys that a node holds
--   :g:<group>  keys in their order    :y:<group> keys by expiry       :x  keys by expiry
-- Nothing has an expiry of Redis: that would leave index entries behind.
local P = KEYS[1]
local T = redis.call('TIME')
local now = T[1] * 1000 + math.floor(T[2] / 1000)
local LAST = 9007199254740991

local function int(number) return string.format('%.0f', number) end
local function after(millis) return int(math.min(now + tonumber(millis), LAST)) end
local function row(key) return P .. ':r:' .. key end

-- The fields of a record that has not expired.
local function live(key)
    local f = redis.call('HMGET', row(key), 'x', 'e', 'n', 'c', 'd', 'q', 'g', 'l')
    if f[1] and tonumber(f[1]) > now then
        return { x = f[1], e = f[2], n = f[3], c = f[4], d = f[5], q = f[6], g = f[7], l = f[8] }
    end
    return nil
end

-- The reply for a record.
local function reply(key)
    local f = redis.call('HMGET', row(key), 'v', 'e', 'n', 'c', 'l', 'd', 'q', 'g', 'x')
    f[10] = key
    return f
end

-- Deletes a record, expired or not, and its index entries.
local function drop(key)
    local f = redis.call('HMGET', row(key), 'x', 'n', 'q', 'g')
    if not f[1] then return 0 end
    if f[2] then redis.call('SREM', P .. ':n:' .. f[2], key) end
    if f[3] then redis.call('ZREM', P .. ':q:' .. f[3], key) end
    if f[4] then
        redis.call('ZREM', P .. ':g:' .. f[4], key)
        redis.call('ZREM', P .. ':y:' .. f[4], key)
    end
    redis.call('ZREM', P .. ':x', key)
    redis.call('DEL', row(key))
    return 1
end

-- Moves the expiry of a record.
local function expire(key, group, at)
    redis.call('HSET', row(key), 'x', at)
    redis.call('ZADD', P .. ':x', at, key)
    if group then redis.call('ZADD', P .. ':y:' .. group, at, key) end
end

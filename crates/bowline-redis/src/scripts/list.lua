-- ARGV: 1 group, 2 key to go on after or '', 3 limit
local out = { int(now) }
local from = ARGV[2] == '' and '-' or '(' .. ARGV[2]
local left = tonumber(ARGV[3])
while left > 0 do
    local page = redis.call('ZRANGEBYLEX', P .. ':g:' .. ARGV[1], from, '+', 'LIMIT', 0, left)
    if #page == 0 then break end
    for _, key in ipairs(page) do
        if live(key) then
            out[#out + 1] = reply(key)
            left = left - 1
        end
    end
    from = '(' .. page[#page]
end
return out

-- What a script does all day: calls, tables, strings, closures. The same work at every run.
local function fib(n)
  if n < 2 then return n end
  return fib(n - 1) + fib(n - 2)
end

local words = {}
for i = 1, 16000 do words[i] = string.format("%05d-%s", (i * 7919) % 6007, string.rep("x", i % 7)) end
table.sort(words)
local counts = {}
for _, word in ipairs(words) do
  local key = word:match("^(%d+)"):sub(-2)
  counts[key] = (counts[key] or 0) + #word
end
local sum = 0
for key, count in pairs(counts) do sum = sum + tonumber(key) * count end
local parts = {}
for i = 1, 8000 do parts[#parts + 1] = tostring(i):reverse():upper() end
print(fib(23), sum, #table.concat(parts, ","))

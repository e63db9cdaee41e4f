-- Replays, spread over 10,000 keys that `compare_api.py` has completed. `wrk … -s replays.lua URL -- TOKEN`
local requests, number = {}, 0

function init(args)
  local headers = { ["Authorization"] = "Bearer " .. args[1], ["Content-Type"] = "application/json" }
  for i = 1, 10000 do
    requests[i] = wrk.format("POST", "/v1/runs", headers, '{"function":"bench","key":"replay:' .. i .. '"}')
  end
end

function request()
  number = number % 10000 + 1
  return requests[number]
end

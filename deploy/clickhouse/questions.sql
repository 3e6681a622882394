-- Questions to ask, one at a time by collectctl query --server URL, or all of them:
--   clickhouse-client --database collect --multiquery < questions.sql

-- Which functions took most time by themselves, over all sessions?
SELECT any(f.name) AS name, any(f.build_id) AS build_id, sum(s.calls) AS calls,
       sum(s.self_ns) / 1e9 AS self_s, sum(s.total_ns) / 1e9 AS total_s,
       max(s.longest_ns) / 1e6 AS longest_ms
FROM function_seconds AS s ANY LEFT JOIN (SELECT * FROM functions FINAL) AS f USING (function)
GROUP BY function ORDER BY self_s DESC LIMIT 20;

-- How long do calls of the busiest functions take: median, 99th percentile? The middle of a bucket.
SELECT any(f.name) AS name, sum(s.calls) AS calls,
       sumMap(s.buckets, s.counts) AS histogram,
       arrayCumSum(histogram.2) AS upto,
       arrayElement(histogram.1, arrayFirstIndex(n -> n * 2 >= arraySum(histogram.2), upto)) AS half,
       arrayElement(histogram.1,
                    arrayFirstIndex(n -> n * 100 >= 99 * arraySum(histogram.2), upto)) AS most,
       if(half < 16, half, (16.5 + half % 16) * exp2(intDiv(half, 16) - 1)) AS median_ns,
       if(most < 16, most, (16.5 + most % 16) * exp2(intDiv(most, 16) - 1)) AS p99_ns
FROM function_seconds AS s ANY LEFT JOIN (SELECT * FROM functions FINAL) AS f USING (function)
GROUP BY function ORDER BY calls DESC LIMIT 20;

-- The same function in two builds: did it become slower? By name, for builds differ in offsets.
SELECT f.name AS name, f.build_id AS build_id, sum(s.calls) AS all_calls,
       sum(s.self_ns) / all_calls AS self_ns_a_call
FROM function_seconds AS s ANY LEFT JOIN (SELECT * FROM functions FINAL) AS f USING (function)
GROUP BY name, build_id ORDER BY name, build_id LIMIT 100;

-- Which devices are slow at what they do most?
SELECT x.device_model AS device_model, any(name) AS name, sum(calls) AS all_calls,
       sum(self_ns) / all_calls AS self_ns_a_call
FROM (SELECT function, f.name AS name, session, calls, self_ns FROM function_seconds AS s
      ANY LEFT JOIN (SELECT * FROM functions FINAL) AS f USING (function)) AS named
ANY LEFT JOIN sessions AS x USING (session)
GROUP BY device_model, function ORDER BY all_calls DESC LIMIT 20;

-- What did the newest session do, second by second?
SELECT second, sum(calls) AS calls, sum(self_ns) / 1e9 AS busy_s, uniqExact(stream) AS threads
FROM function_seconds
WHERE session = (SELECT argMax(session, start_unix_ns) FROM sessions)
GROUP BY second ORDER BY second;

-- Which threads were busiest in it?
SELECT t.name AS name, t.tid AS tid, sum(s.calls) AS calls, sum(s.self_ns) / 1e9 AS self_s
FROM function_seconds AS s
ANY LEFT JOIN (SELECT session, stream, any(name) AS name, any(tid) AS tid FROM threads
               GROUP BY session, stream) AS t USING (session, stream)
WHERE session = (SELECT argMax(session, start_unix_ns) FROM sessions)
GROUP BY stream, name, tid ORDER BY self_s DESC LIMIT 20;

-- Which modules took the time?
SELECT f.module AS module, f.build_id AS build_id, uniqExact(function) AS functions,
       sum(s.calls) AS calls, sum(s.self_ns) / 1e9 AS self_s
FROM function_seconds AS s ANY LEFT JOIN (SELECT * FROM functions FINAL) AS f USING (function)
GROUP BY module, build_id ORDER BY self_s DESC LIMIT 20;

-- What is missing, and why?
SELECT x.device AS device, x.process AS process, session, reasons, sum(lost) AS lost, count() AS gaps
FROM gaps ANY LEFT JOIN sessions AS x USING (session)
GROUP BY device, process, session, reasons ORDER BY lost DESC LIMIT 20;

-- Which sessions are not whole?
SELECT session, device, process, state, parts, events, lost_events, missing
FROM sessions WHERE state != 'complete' OR lost_events > 0 ORDER BY start_unix_ns DESC LIMIT 20;

-- How many sessions and events came on each day, from how many devices?
SELECT day, count() AS sessions, uniqExact(device) AS devices, sum(events) AS events
FROM sessions GROUP BY day ORDER BY day;

-- Which functions are called now and were not a week ago?
SELECT any(f.name) AS name, min(s.second) AS first_seen, sum(s.calls) AS calls
FROM function_seconds AS s ANY LEFT JOIN (SELECT * FROM functions FINAL) AS f USING (function)
GROUP BY function HAVING first_seen > now() - 7 * 86400 ORDER BY calls DESC LIMIT 20;

-- The first events of a thread, where they were loaded (load --events load).
SELECT e.seq AS seq, e.time_ns AS time_ns, e.kind AS kind, f.name AS name
FROM (SELECT session, stream, seq, time_ns, toUInt64(function) AS function, kind
      FROM events FINAL
      WHERE session = (SELECT argMax(session, start_unix_ns) FROM sessions)
      ORDER BY stream, seq LIMIT 100) AS e
ANY LEFT JOIN (SELECT * FROM functions FINAL) AS f USING (function)
ORDER BY stream, seq;

-- Is every loaded event there? As many rows as the ranges name, of each thread.
SELECT session, stream, rows, named
FROM (SELECT session, stream, count() AS rows FROM events FINAL GROUP BY session, stream) AS e
ANY LEFT JOIN (
  SELECT session, stream, max(events) AS named FROM threads GROUP BY session, stream) AS t
USING (session, stream)
ORDER BY session, stream LIMIT 100;

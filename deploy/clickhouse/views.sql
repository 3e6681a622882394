-- What questions ask: each row once, of the loads that count. Made after schema.sql:
--   clickhouse-client --database collect --multiquery < views.sql

-- Parts, without those that a merged one covers.
CREATE VIEW IF NOT EXISTS counted_parts AS
SELECT * FROM parts FINAL
WHERE (session, part) NOT IN (SELECT session, arrayJoin(covers) FROM parts FINAL);

CREATE VIEW IF NOT EXISTS sessions AS
SELECT
  session,
  any(device) AS device,
  any(device_model) AS device_model,
  any(process) AS process,
  any(pid) AS pid,
  any(tag) AS tag,
  if(countIf(state = 'complete') > 0, 'complete', any(state)) AS state,
  count() AS parts,
  min(day) AS day,
  min(start_unix_ns) AS start_unix_ns,
  min(start_ns) AS start_ns,
  min(first_ns) AS first_ns,
  max(last_ns) AS last_ns,
  sum(events) AS events,
  sum(lost_events) AS lost_events,
  groupUniqArray(missing) AS missing
FROM counted_parts GROUP BY session;

CREATE VIEW IF NOT EXISTS threads AS
SELECT * FROM part_threads FINAL WHERE load IN (SELECT load FROM counted_parts);

CREATE VIEW IF NOT EXISTS modules AS
SELECT * FROM part_modules FINAL WHERE load IN (SELECT load FROM counted_parts);

CREATE VIEW IF NOT EXISTS gaps AS
SELECT * FROM part_gaps FINAL WHERE load IN (SELECT load FROM counted_parts);

CREATE VIEW IF NOT EXISTS function_seconds AS
SELECT * FROM part_function_seconds FINAL WHERE load IN (SELECT load FROM counted_parts);

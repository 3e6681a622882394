-- The tables of a fleet's recordings, for ClickHouse 24.8 and later:
--   clickhouse-client --query 'CREATE DATABASE collect'
--   clickhouse-client --database collect --multiquery < schema.sql
-- `collect-load` fills them (daemon/warehouse/WAREHOUSE.md); questions ask the views of views.sql.
--
-- Every table is a ReplacingMergeTree whose key says what a row is about, so a row that is loaded
-- twice, by halves or out of order is there once. A row belongs to a load: what one version of the
-- loader made of one state of a part. The load counts when its row in `parts`, which comes last, is
-- there; the views leave out all others.

-- For events.function: a few thousand of them in a hundred million rows.
SET allow_suspicious_low_cardinality_types = 1;

-- What one collector stored of one session. `covers`: the row is of several parts that were merged,
-- and those are not counted beside it.
CREATE TABLE IF NOT EXISTS parts (
  session LowCardinality(String),       -- PROCESSID-RECORDING, as in the keys of the bucket
  part String,                          -- COLLECTOR-EPOCH/session_…/pid_…
  load UInt64,                          -- of the rows in the other tables
  covers Array(String),
  place String,                         -- where it was read from: s3://BUCKET/PREFIX, or a directory
  device LowCardinality(String),
  device_model LowCardinality(String),
  process LowCardinality(String),
  pid UInt32,
  tag LowCardinality(String),
  state LowCardinality(String),         -- complete, recovered, failed
  missing String,                       -- a sentence; empty: nothing is
  collector LowCardinality(String),
  epoch UInt64,
  day Date,                             -- on which the session began
  start_ns UInt64,                      -- of the recording, on the device's clock
  start_unix_ns UInt64,                 -- the same moment
  first_ns UInt64,                      -- of its events, on the device's clock
  last_ns UInt64,
  events UInt64,                        -- that the part has
  lost_events UInt64,
  atf_version UInt8,
  event_rows LowCardinality(String),    -- load: in `events`; reference: query them in place; none
  loaded_unix_ns UInt64
) ENGINE = ReplacingMergeTree(loaded_unix_ns) ORDER BY (session, part);

CREATE TABLE IF NOT EXISTS part_threads (
  session LowCardinality(String),
  load UInt64,
  stream UInt32,                        -- the agent's number of the thread: the same in every part
  thread UInt32,                        -- N of thread_N in this part
  tid UInt32,
  name String,
  events UInt64,
  lost_events UInt64
) ENGINE = ReplacingMergeTree ORDER BY (session, load, stream);

-- Which of the agent's numbers a thread's file has: row `position` + i is number `first_seq` + i.
CREATE TABLE IF NOT EXISTS part_ranges (
  session LowCardinality(String),
  load UInt64,
  stream UInt32,
  thread UInt32,
  position UInt64,
  first_seq UInt64,
  records UInt64,
  is_exact UInt8                        -- 0: joined gaps; the numbers are at least these
) ENGINE = ReplacingMergeTree ORDER BY (session, load, stream, position);

CREATE TABLE IF NOT EXISTS part_modules (
  session LowCardinality(String),
  load UInt64,
  module UInt32,                        -- the upper half of a function id in the session's files
  build_id String,                      -- hexadecimal; SESSION/MODULE where the module has none
  first_function UInt64,                -- `function` at offset 0
  path LowCardinality(String)
) ENGINE = ReplacingMergeTree ORDER BY (session, load, module);

CREATE TABLE IF NOT EXISTS part_gaps (
  session LowCardinality(String),
  load UInt64,
  stream UInt32,
  lane LowCardinality(String),          -- index, detail
  before_seq UInt64,                    -- position in the file of the first record behind it
  reasons Array(String),
  lost UInt64,
  numbered_lost UInt64,                 -- of these, the ones that had numbers
  first_ns UInt64,
  last_ns UInt64
) ENGINE = ReplacingMergeTree ORDER BY (session, load, stream, lane, before_seq);

-- A function of a build, the same in every session: `function` is the first eight bytes of
-- SHA-256(build_id), little-endian, plus the offset, modulo 2^64.
CREATE TABLE IF NOT EXISTS functions (
  function UInt64,
  build_id String,
  offset UInt64,                        -- in the module
  name String,                          -- module+0xoffset where no name is known
  module LowCardinality(String),        -- path
  file LowCardinality(String),          -- of the source; empty: not known
  line UInt32,
  version UInt64                        -- the highest wins: a name before none, then the newest
) ENGINE = ReplacingMergeTree(version) ORDER BY function;

-- Calls by function and second, counted by formats/calls when the session was sealed or later, and
-- never by pairing events here. A call counts in the second in which it ended.
CREATE TABLE IF NOT EXISTS part_function_seconds (
  function UInt64 CODEC(ZSTD(1)),
  session LowCardinality(String),
  load UInt64 CODEC(ZSTD(1)),
  stream UInt32,
  second DateTime CODEC(DoubleDelta, ZSTD(1)),
  piece UInt32,                         -- how often the device's clock had stepped back
  calls UInt64 CODEC(T64, ZSTD(1)),
  total_ns UInt64 CODEC(T64, ZSTD(1)),
  self_ns UInt64 CODEC(T64, ZSTD(1)),
  longest_ns UInt64 CODEC(T64, ZSTD(1)),
  buckets Array(UInt16) CODEC(ZSTD(1)), -- of durations: 16 to a power of two, WAREHOUSE.md "Buckets"
  counts Array(UInt64) CODEC(ZSTD(1))
) ENGINE = ReplacingMergeTree
PARTITION BY toYYYYMM(second)
ORDER BY (function, session, load, stream, second, piece)
TTL second + INTERVAL 3 YEAR;

-- Events by the agent's own numbers: two parts that have the same record give one row.
CREATE TABLE IF NOT EXISTS events (
  session LowCardinality(String),
  stream UInt32,
  seq UInt64 CODEC(DoubleDelta, ZSTD(1)),
  time_ns UInt64 CODEC(DoubleDelta, ZSTD(1)),  -- on the device's clock
  function LowCardinality(UInt64) CODEC(ZSTD(1)),
  kind UInt8 CODEC(ZSTD(1)),            -- 1 call, 2 return, 3 exception
  day Date CODEC(ZSTD(1))               -- on which the session began
) ENGINE = ReplacingMergeTree
PARTITION BY toYYYYMM(day)
ORDER BY (session, stream, seq)
TTL day + INTERVAL 14 DAY;

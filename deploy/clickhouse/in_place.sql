-- Events in place: index.atf.zst in the bucket, as the uploader wrote it, read by ClickHouse
-- 26.3 and later (it needs `_row_number` of RowBinary). Made after schema.sql and views.sql:
--   clickhouse-client --database collect --multiquery < in_place.sql
-- and, once, with your own words, because credentials belong to the server:
--   CREATE NAMED COLLECTION collect_bucket AS url = 'https://s3.REGION.amazonaws.com/BUCKET/',
--     access_key_id = '…', secret_access_key = '…'
-- A key that the server has from its machine is not named.

-- Which numbers the rows of a file have. Where parts overlap, a record is taken of the part whose
-- range begins first: those below `seen_until` are repeats.
CREATE VIEW IF NOT EXISTS file_ranges AS
SELECT
  session, part_key, load, atf_version, thread, stream, position, first_seq, records,
  max(first_seq + records) OVER (
    PARTITION BY session, stream ORDER BY first_seq, load
    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS seen_until
FROM (
  SELECT
    r.session AS session, p.part_key AS part_key, r.load AS load, p.atf_version AS atf_version,
    r.thread AS thread, r.stream AS stream, r.position AS position, r.first_seq AS first_seq,
    r.records AS records
  FROM part_ranges AS r FINAL
  INNER JOIN (
    SELECT load, atf_version, concat(collector, '-', toString(epoch)) AS part_key
    FROM parts FINAL WHERE part != 'merged') AS p ON p.load = r.load);

-- SELECT … FROM events_in_place(session = 'PROCESSID-RECORDING'): the columns of `events`, and
-- `detail`, the number of the detail record in the part's own detail.atf (2^64-1: none). An index
-- has two rows of header before its events and two of footer behind them; the ranges leave both out.
CREATE VIEW IF NOT EXISTS events_in_place AS
SELECT
  r.session AS session,
  r.stream AS stream,
  r.first_seq + (e.row - r.position) AS seq,
  e.time_ns AS time_ns,
  m.first_function + bitAnd(e.local_function, 4294967295) AS function,
  toUInt8(if(r.atf_version = 1, bitShiftRight(e.third, 32), bitAnd(e.fourth, 255))) AS kind,
  if(r.atf_version != 1, e.third,
     if(bitShiftRight(e.fourth, 32) = 4294967295, 18446744073709551615,
        bitShiftRight(e.fourth, 32))) AS detail
FROM (
  SELECT
    extract(_path, '/part=([^/]+)/') AS part_key,
    toUInt32OrZero(extract(_path, '/thread=([0-9]+)/')) AS thread,
    toUInt64(assumeNotNull(_row_number) - 2) AS row, time_ns, local_function,
    bitShiftRight(local_function, 32) AS module, third, fourth
  FROM s3(collect_bucket,
          filename = concat('v1/', lower(substring(hex(SHA256({session:String})), 1, 2)),
                            '/device=*/session=', {session:String},
                            '/part=*/thread=*/index.atf.zst'),
          format = 'RowBinary',
          structure = 'time_ns UInt64, local_function UInt64, third UInt64, fourth UInt64')
  WHERE _row_number >= 2) AS e
ASOF INNER JOIN (SELECT * FROM file_ranges WHERE session = {session:String}) AS r
  ON e.part_key = r.part_key AND e.thread = r.thread AND e.row >= r.position
LEFT JOIN (SELECT * FROM part_modules FINAL WHERE session = {session:String}) AS m
  ON m.load = r.load AND m.module = e.module
WHERE e.row < r.position + r.records AND seq >= r.seen_until;

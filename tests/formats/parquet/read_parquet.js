// What DuckDB (npm package @duckdb/node-api, found by NODE_PATH) reads from a Parquet file.
// Usage: node read_parquet.js FILE QUERIES
// QUERIES is a file with a JSON array of SQL, in which $FILE is the Parquet file. Prints an array: for
// each query its rows as objects, integers of 64 bits as strings; or the error's text. Ends with 2
// without the package.
'use strict';

const fs = require('fs');

let duckdb;
try {
  duckdb = require('@duckdb/node-api');
} catch (error) {
  console.error(`@duckdb/node-api: ${error.message}`);
  process.exit(2);
}

async function main([file, queries]) {
  const instance = await duckdb.DuckDBInstance.create(':memory:', {threads: '1'});
  const connection = await instance.connect();
  const quoted = `'${file.replaceAll("'", "''")}'`;
  const answers = [];
  for (const query of JSON.parse(fs.readFileSync(queries, 'utf8'))) {
    try {
      const reader = await connection.runAndReadAll(query.replaceAll('$FILE', quoted));
      answers.push(reader.getRowObjectsJson());
    } catch (error) {
      answers.push(String(error.message));
    }
  }
  fs.writeSync(1, JSON.stringify(answers));
}

main(process.argv.slice(2));

// Statistics of a column chunk, in the order that TypeDefinedOrder means. Pure functions.
#pragma once

#include <cstdint>
#include <string>

#include "formats/parquet/column_buffer.h"
#include "formats/parquet/thrift_writer.h"

namespace collect::parquet {

struct Statistics {
  uint64_t null_count = 0;
  // PLAIN, of strings the bytes alone. Missing where there are no values, where all are NaN, and
  // where one of the two is longer than kMaxStatisticsBytes.
  bool has_bounds = false;
  std::string min_value;
  std::string max_value;
};

// Integers by their own sign, doubles without NaN and with zeros as -0 and +0, strings by their
// bytes.
Statistics statistics_of(const ColumnBuffer& buffer);
// As a field of ColumnMetaData.
void write_statistics(const Statistics& statistics, ThriftWriter& thrift);

}  // namespace collect::parquet

// Parquet files as DuckDB reads them, through read_parquet.js.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/formats/programs.h"
#include "tests/formats/reference_files.h"

namespace collect::parquet::testing {

class DuckDb : public ::testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // One element for each query: its rows, or a string that says why there are none. Null where
  // DuckDB is not available.
  nlohmann::json read(const std::vector<uint8_t>& file, const std::vector<std::string>& queries) {
    const auto path = folder_ / "file.parquet";
    const auto asked = folder_ / "queries.json";
    reference::write_file(path, file);
    std::ofstream(asked) << nlohmann::json(queries).dump();
    const reference::Ran ran =
        reference::run("node '" READ_PARQUET "' '" + path.string() + "' '" + asked.string() + "'");
    if (ran.status == 2 || ran.status == 127) return nullptr;
    EXPECT_EQ(ran.status, 0) << ran.out;
    return nlohmann::json::parse(ran.out, nullptr, false);
  }

 private:
  const std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / ("parquet_" + std::to_string(getpid()));
};

// In tests: `answers` is what read() returned.
#define SKIP_WITHOUT_DUCKDB(answers)                                                 \
  if ((answers).is_null()) {                                                         \
    GTEST_SKIP() << "node or its package @duckdb/node-api is not there (NODE_PATH)"; \
  }                                                                                  \
  ASSERT_TRUE((answers).is_array())

}  // namespace collect::parquet::testing

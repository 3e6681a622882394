// A part as rows of the tables of deploy/clickhouse/schema.sql, sent in blocks while they come.
// Memory: one block of each table. Used on one thread.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "daemon/warehouse/clickhouse_client.h"
#include "daemon/warehouse/part_identity.h"
#include "daemon/warehouse/row_batch.h"
#include "storage/export/capture_rows.h"

namespace collect::warehouse {

inline constexpr uint64_t kEventsPerBlock = 1u << 20;  // 25 bytes each
inline constexpr size_t kMaxBlockBytes = 8u << 20;     // of the other tables

enum class EventRows : uint8_t {
  kNone,       // only what is counted of them
  kReference,  // the same, and they are asked in place
  kLoad,       // into the table `events`
};
std::string_view event_rows_name(EventRows rows);

// Numbers of functions: those of a session into those of the fleet.
class FleetFunctions {
 public:
  FleetFunctions(const storage::Manifest& manifest, std::string session);
  uint64_t number_of(uint64_t function_id) {
    const uint64_t module = function_id >> 32;
    if (module != module_) find(static_cast<uint32_t>(module));
    return first_function_ + (function_id & UINT32_MAX);
  }
  const std::string& build_of(uint32_t module);

 private:
  struct Build {
    std::string name;
    uint64_t first_function = 0;
  };
  Build& build(uint32_t module);
  void find(uint32_t module);

  const std::string session_;
  std::unordered_map<uint32_t, Build> builds_;
  uint64_t module_ = UINT64_MAX;  // of the last one
  uint64_t first_function_ = 0;
};

struct PartCounts {
  uint64_t events = 0;      // of the part
  uint64_t event_rows = 0;  // that were sent
  uint64_t second_rows = 0;
  std::vector<uint32_t> inexact_threads{};  // whose events have no exact numbers: not sent
};

class PartRows : public exports::CaptureRows {
 public:
  // `covers`: of a merged part. `client` outlives it.
  PartRows(ClickHouseClient& client, PartIdentity identity, std::vector<std::string> covers,
           std::string place, EventRows event_rows);

  Status begin(const exports::CaptureSession& session) override;
  Status thread(const exports::ThreadRow& row) override;
  Status event(const exports::EventRow& row) override;
  Status second(const exports::SecondRow& row) override;
  Status function(const exports::FunctionLocation& place,
                  const calls::FunctionTimes& times) override;
  // Sends what is left, and the row of `parts` last.
  Status end(const exports::SessionRow& row) override;

  const PartCounts& counts() const { return counts_; }

 private:
  struct Table {
    const char* name;
    const char* columns;
    RowBatch rows{};
  };
  struct ThreadPlace {
    uint32_t stream = 0;
    bool is_exact = true;
    uint64_t last_second = 0;
    uint32_t piece = 0;
  };

  void put_key(RowBatch& rows) const;
  Status end_row(Table& table);
  Status send(Table& table);
  Status send_events();
  void put_modules();
  Status put_gaps();
  Status put_ranges(const exports::ThreadRow& row);
  ThreadPlace& place_of(uint32_t thread);

  ClickHouseClient& client_;
  const PartIdentity identity_;
  const std::vector<std::string> covers_;
  const std::string place_;
  const EventRows event_rows_;
  const exports::CaptureSession* of_ = nullptr;
  std::optional<FleetFunctions> functions_of_;
  std::unordered_map<uint32_t, ThreadPlace> threads_of_;  // by N of thread_N
  ThreadPlace* event_place_ = nullptr;                    // of the last event's thread
  uint32_t event_thread_ = UINT32_MAX;
  uint16_t day_ = 0;  // on which the session began, since 1970
  Table threads_;
  Table ranges_;
  Table modules_;
  Table gaps_;
  Table functions_;
  Table seconds_;
  RowBatch events_;
  PartCounts counts_;
};

}  // namespace collect::warehouse

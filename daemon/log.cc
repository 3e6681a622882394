#include "daemon/log.h"

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include "formats/core/text/printable.h"

namespace collect::daemon {
namespace {

constexpr char kPayloadFlag = '*';

class PrintablePayload : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&,
              spdlog::memory_buf_t& out) override {
    const std::string line =
        printable_sentence(std::string_view(message.payload.data(), message.payload.size()));
    out.append(line.data(), line.data() + line.size());
  }
  std::unique_ptr<spdlog::custom_flag_formatter> clone() const override {
    return std::make_unique<PrintablePayload>();
  }
};

}  // namespace

void set_log_format(spdlog::logger& logger) {
  auto formatter = std::make_unique<spdlog::pattern_formatter>();
  formatter->add_flag<PrintablePayload>(kPayloadFlag);
  formatter->set_pattern("%Y-%m-%dT%H:%M:%S.%e %^%l%$ %*");
  logger.set_formatter(std::move(formatter));
}

void set_up_log(const std::string& level) {
  auto logger = spdlog::stderr_logger_mt("collectord");
  set_log_format(*logger);
  spdlog::set_default_logger(std::move(logger));
  spdlog::set_level(spdlog::level::from_str(level));
}

}  // namespace collect::daemon

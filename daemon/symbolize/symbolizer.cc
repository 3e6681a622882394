#include "daemon/symbolize/symbolizer.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "daemon/symbolize/child_program.h"
#include "daemon/symbolize/limits.h"

namespace collect::symbolize {
namespace {

LookupRequest request_for(const storage::ModuleInfo& module, const SymbolizerOptions& options) {
  LookupRequest request;
  // A path that was cut names another file, if any.
  if (module.path.size() < kMaxPathBytes) request.module_path = module.path;
  request.build_id = module.build_id;
  request.module_bytes = module.size;
  request.roots = options.roots;
  request.directories = options.directories;
  return request;
}

// Puts an answer together; refuses what was not asked for.
class AnswerBuilder {
 public:
  explicit AnswerBuilder(const LookupRequest& request) : request_(request) {}

  Status take(Bytes bytes) {
    reader_.push(bytes);
    while (true) {
      auto frame = reader_.next();
      if (!frame.ok()) return frame.error();
      if (!*frame) return {};
      COLLECT_TRY(take_frame(**frame));
    }
  }

  Answer finish(const ChildEnding& ending) {
    answer_.is_whole = answer_.is_whole && ending.fault.empty();
    if (!answer_.is_whole) {
      answer_.problem = ending.fault.empty() ? "ended: the answer is not whole" : ending.fault;
    }
    return std::move(answer_);
  }

 private:
  Status take_frame(const Frame& frame) {
    if (answer_.is_whole) return Error{Code::kDamaged, "ended: it sent more after its last frame"};
    switch (frame.kind) {
      case FrameKind::kSource:
        return take_source(frame.body);
      case FrameKind::kNames:
        return take_names(frame.body);
      case FrameKind::kLines:
        return take_lines(frame.body);
      case FrameKind::kFunctions:
        return decode_functions(frame.body, answer_.functions);
      case FrameKind::kDone:
        return take_done(frame.body);
      case FrameKind::kRequest:
        break;
    }
    return Error{Code::kDamaged, "ended: it answered with a request"};
  }

  Status take_source(Bytes body) {
    auto source = decode_source(body);
    if (!source.ok()) return source.error();
    answer_.source = std::move(source->path);
    answer_.problem = std::move(source->problem);
    answer_.missing = std::move(source->missing);
    return {};
  }

  Status take_names(Bytes body) {
    const size_t before = answer_.names.size();
    COLLECT_TRY(decode_names(body, answer_.names));
    for (size_t at = before; at < answer_.names.size(); ++at) {
      const NamedAddress& named = answer_.names[at];
      name_bytes_ += named.name.size();
      const bool is_asked_for =
          std::binary_search(request_.addresses.begin(), request_.addresses.end(), named.address);
      if (!is_asked_for || at >= request_.most_names || name_bytes_ > request_.most_name_bytes ||
          (at != 0 && answer_.names[at - 1].address >= named.address)) {
        answer_.names.resize(at);
        return Error{Code::kDamaged, "ended: it sent names that were not asked for"};
      }
    }
    return {};
  }

  // Takes lines of names that were taken, each once.
  Status take_lines(Bytes body) {
    std::vector<LineOfAddress> lines;
    COLLECT_TRY(decode_lines(body, lines));
    for (LineOfAddress& line : lines) {
      const auto named = std::lower_bound(
          answer_.names.begin(), answer_.names.end(), line.address,
          [](const NamedAddress& one, uint32_t wanted) { return one.address < wanted; });
      name_bytes_ += line.file.size();
      if (named == answer_.names.end() || named->address != line.address || !named->file.empty() ||
          line.file.empty() || name_bytes_ > request_.most_name_bytes) {
        return Error{Code::kDamaged, "ended: it sent lines that were not asked for"};
      }
      named->file = std::move(line.file);
      named->line = line.line;
    }
    return {};
  }

  Status take_done(Bytes body) {
    auto done = decode_done(body);
    if (!done.ok()) return done.error();
    if (done->matched.size() != request_.patterns.size()) {
      return Error{Code::kDamaged, "ended: it answered another request"};
    }
    answer_.matched.assign(done->matched.begin(), done->matched.end());
    answer_.left_out = done->left_out;
    answer_.lines_left_out = done->lines_left_out;
    answer_.is_whole = true;
    return {};
  }

  const LookupRequest& request_;
  FrameReader reader_{kMaxAnswerFrameBytes};
  Answer answer_;
  uint64_t name_bytes_ = 0;
};

}  // namespace

Result<Answer> Symbolizer::name(const storage::ModuleInfo& module, std::vector<uint32_t> addresses,
                                uint64_t most_names, uint64_t most_name_bytes,
                                const std::atomic<bool>* stop) const {
  LookupRequest request = request_for(module, options_);
  request.addresses = std::move(addresses);
  request.most_names = most_names;
  request.most_name_bytes = most_name_bytes;
  return ask_at_each_path(module, std::move(request), kLookupDeadline, stop);
}

Result<Answer> Symbolizer::find(const storage::ModuleInfo& module,
                                const std::vector<std::string>& patterns,
                                std::chrono::milliseconds deadline,
                                const std::atomic<bool>* stop) const {
  LookupRequest request = request_for(module, options_);
  request.patterns = patterns;
  return ask_at_each_path(module, std::move(request), std::min(deadline, kLookupDeadline), stop);
}

Result<Answer> Symbolizer::ask_at_each_path(const storage::ModuleInfo& module,
                                            LookupRequest request,
                                            std::chrono::milliseconds deadline,
                                            const std::atomic<bool>* stop) const {
  auto answer = ask(request, deadline, stop);
  const auto is_missing = [](const Result<Answer>& one) {
    return one.ok() && one->is_whole && one->source.empty();
  };
  if (!is_missing(answer) || options_.known_files == nullptr) return answer;
  for (std::string& path : options_.known_files->other_paths(module)) {
    request.module_path = std::move(path);
    auto again = ask(request, deadline, stop);
    if (!is_missing(again)) return again;
  }
  return answer;
}

Result<Answer> Symbolizer::ask(const LookupRequest& request, std::chrono::milliseconds deadline,
                               const std::atomic<bool>* stop) const {
  const std::vector<uint8_t> body = encode_request(request);
  if (body.size() > kMaxRequestBytes) {
    return Error{Code::kLimit, fmt::format("a lookup of {} bytes is too large", body.size())};
  }
  const ChildBounds bounds{deadline, kMaxAnswerBytes, stop};
  AnswerBuilder builder(request);
  auto ending = run_child({options_.program}, frame_bytes(FrameKind::kRequest, body), bounds,
                          [&builder](Bytes bytes) { return builder.take(bytes); });
  if (!ending.ok()) return ending.error();
  return builder.finish(*ending);
}

std::string symbolizer_program() {
  return own_program("collect-symbolizer");
}

}  // namespace collect::symbolize

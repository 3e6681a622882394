#include <fmt/core.h>

#include <filesystem>
#include <map>
#include <set>
#include <sstream>

#include "daemon/ctl/check/verify.h"
#include "daemon/ctl/store/parts.h"
#include "daemon/ctl/store/store_commands.h"
#include "daemon/ctl/terminal/json.h"
#include "daemon/upload/download.h"
#include "formats/core/text/figures.h"
#include "storage/fs/posix_fs.h"
#include "storage/fs/scratch_directory.h"

namespace collect::ctl {
namespace {

// Below `output`, the user's own word, in `below` there, with the name that the session had. Both
// others are the store's words: `fs` leads nowhere out of `output` by them.
Result<std::string> fetch(upload::Store& store, const std::string& prefix,
                          const std::string& output, const std::string& below) {
  storage::PosixFs fs(output);
  const std::string root = below.empty() ? output : fmt::format("{}/{}", output, below);
  COLLECT_TRY(fs.make_directories(root));
  return upload::download_part(store.client(), store.retries(), prefix, fs, root);
}

// How often each session's name is there.
std::map<std::string, size_t> count_names(const std::vector<ChosenPart>& parts) {
  std::map<std::string, size_t> names;
  for (const ChosenPart& part : parts) ++names[part.session];
  return names;
}

// Parts that nothing more is known of are named, in the document too.
void put_unreadable(const upload::Store& store, const ChosenParts& chosen, Json& sessions) {
  for (const UnreadablePart& part : chosen.unreadable) {
    sessions.push_back({{"url", store.url_of(part.prefix)}, {"error", error_json(part.error)}});
  }
}

void say(std::ostream& err, const std::string& sentence) {
  if (!sentence.empty()) err << "collectctl: " << printable_sentence(sentence) << "\n";
}

}  // namespace

int download_parts(const upload::StoreRequest& request, std::ostream& out, std::ostream& err) {
  const Answer answer{request.json, out, err};
  StoreLine line(err, request.progress);
  const auto store = open_store(request, line);
  if (!store.ok()) return answer.refuse(store.error(), 2);
  const auto chosen = choose_parts(**store, line);
  if (!chosen.ok()) return answer.refuse(chosen.error(), 2);
  std::error_code error;
  const std::string output = std::filesystem::absolute(request.output, error).lexically_normal();
  if (error) return answer.refuse(errno_error(error.value(), request.output), 2);
  const auto names = count_names(chosen->parts);
  std::set<std::string> taken;  // no two parts into one directory
  Json document = json_document();
  document["sessions"] = Json::array();
  int code = 0;
  for (size_t i = 0; i < chosen->parts.size(); ++i) {
    const ChosenPart& part = chosen->parts[i];
    line.show(fmt::format("downloading {} of {}, {}", i + 1, chosen->parts.size(),
                          short_bytes(part.bytes)));
    const std::string below = names.at(part.session) > 1 ? part.name : "";
    const bool is_free = taken.insert(fmt::format("{}/{}", below, part.session)).second;
    const auto directory =
        is_free ? fetch(**store, part.prefix, output, below)
                : Result<std::string>(Error{
                      Code::kAlreadyExists,
                      fmt::format("another part has {} of {} too: download each by its own URL",
                                  part.session, part.name)});
    line.end();
    Json one = {{"url", (*store)->url_of(part.prefix)}};
    if (!directory.ok()) {
      code = 1;
      if (!request.json) say(err, fmt::format("{}: {}", part.prefix, directory.error().message));
      one["error"] = error_json(directory.error());
    } else {
      one["path"] = *directory;
      one["bytes"] = part.bytes;
      if (!request.json) {
        out << printable_sentence(*directory) << ": " << counted(part.files, "file") << ", "
            << short_bytes(part.bytes) << "\n";
        out.flush();
      }
    }
    document["sessions"].push_back(std::move(one));
  }
  put_unreadable(**store, *chosen, document["sessions"]);
  document["unfinished_parts"] = chosen->unfinished;
  if (request.json) {
    out << json_line(document);
  } else {
    for (const UnreadablePart& part : chosen->unreadable) say(err, part.error.message);
    say(err, unfinished_sentence(chosen->unfinished));
  }
  return chosen->unfinished == 0 && chosen->unreadable.empty() ? code : 1;
}

int verify_parts(const upload::StoreRequest& request, std::ostream& out, std::ostream& err) {
  const Answer answer{request.json, out, err};
  StoreLine line(err, request.progress);
  const auto store = open_store(request, line);
  if (!store.ok()) return answer.refuse(store.error(), 2);
  const auto chosen = choose_parts(**store, line);
  if (!chosen.ok()) return answer.refuse(chosen.error(), 2);
  Json document = json_document();
  document["sessions"] = Json::array();
  int code = 0;
  for (size_t i = 0; i < chosen->parts.size(); ++i) {
    const ChosenPart& part = chosen->parts[i];
    const std::string url = (*store)->url_of(part.prefix);
    line.show(fmt::format("downloading {} of {}, {}", i + 1, chosen->parts.size(),
                          short_bytes(part.bytes)));
    const auto scratch = storage::make_scratch_directory("collectctl_verify");
    if (!scratch.ok()) return answer.refuse(scratch.error(), 2);
    const auto directory = fetch(**store, part.prefix, scratch->path(), "");
    line.end();
    if (!directory.ok()) {
      code = 1;
      if (!request.json)
        out << printable_sentence(fmt::format("{}: {}", url, directory.error().message)) << "\n";
      document["sessions"].push_back({{"url", url}, {"error", error_json(directory.error())}});
      continue;
    }
    VerifyOptions options;
    options.path = *directory;
    options.json = request.json;
    options.strict = request.strict;
    options.allow_incomplete = request.allow_incomplete;
    options.progress = request.progress;
    std::ostringstream said;
    if (verify(options, said, err) != 0) code = 1;
    if (request.json) {
      document["sessions"].push_back(
          {{"url", url}, {"report", Json::parse(said.str(), nullptr, false)}});
    } else {
      out << printable_sentence(url) << "\n" << said.str();
      out.flush();
    }
  }
  put_unreadable(**store, *chosen, document["sessions"]);
  document["unfinished_parts"] = chosen->unfinished;
  if (request.json) {
    out << json_line(document);
  } else {
    for (const UnreadablePart& part : chosen->unreadable) {
      out << (*store)->url_of(part.prefix) << ": " << printable_sentence(part.error.message)
          << "\n";
    }
    say(err, unfinished_sentence(chosen->unfinished));
  }
  return chosen->unfinished == 0 && chosen->unreadable.empty() ? code : 1;
}

}  // namespace collect::ctl

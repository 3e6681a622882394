#include "daemon/ctl/look/open_page.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <sstream>
#include <utility>
#include <vector>

#include "daemon/ctl/convert/made_session.h"
#include "daemon/ctl/convert/running_names.h"
#include "daemon/ctl/look/browser.h"
#include "daemon/ctl/look/served_page.h"
#include "formats/core/crc32.h"
#include "formats/core/text/printable.h"
#include "storage/fs/leftovers.h"
#include "storage/read/session_files.h"

namespace collect::ctl {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxNameBytes = 200;  // of a page, before its number; file systems take 255

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

Result<fs::path> page_directory() {
  fs::path cache = variable("XDG_CACHE_HOME");  // a relative one is to be ignored
  if (!cache.is_absolute() && !variable("HOME").empty()) cache = variable("HOME") + "/.cache";
  if (!cache.is_absolute()) {
    return Error{Code::kNotFound, "HOME is not set: name a file for the page with -o"};
  }
  fs::path pages = cache / "collectord";
  std::error_code error;
  fs::create_directories(pages, error);
  if (error) return Error{Code::kIo, fmt::format("{}: {}", pages.string(), error.message())};
  fs::permissions(pages, fs::perms::owner_all, error);
  return pages;
}

// One for each capture, or for these several: a page that is made again replaces the one before.
std::string page_name(const std::vector<std::string>& captures) {
  const fs::path capture = captures.front();
  const fs::path above = capture.parent_path().filename();
  std::string name = capture.filename().string();
  if (name.starts_with("pid_")) name = fmt::format("{}-{}", above.string(), name);
  std::replace_if(
      name.begin(), name.end(),
      [](char c) { return std::string_view("/%?#\\ ").find(c) != std::string_view::npos; }, '_');
  uint32_t paths = 0;
  for (const std::string& path : captures) {
    paths = crc32c(Bytes(reinterpret_cast<const uint8_t*>(path.c_str()), path.size() + 1), paths);
  }
  std::ostringstream text;
  text << name.substr(0, kMaxNameBytes) << "-" << std::hex << paths << ".html";
  return text.str();
}

// So that there is room for another.
void remove_old_pages(const fs::path& directory) {
  std::error_code error;
  std::vector<std::pair<fs::file_time_type, fs::path>> pages;
  for (fs::directory_iterator at(directory, error), end; !error && at != end; at.increment(error)) {
    if (at->path().extension() != ".html") continue;
    pages.emplace_back(at->last_write_time(error), at->path());
  }
  std::sort(pages.rbegin(), pages.rend());
  for (size_t i = kKeptPages - 1; i < pages.size(); ++i) fs::remove(pages[i].second, error);
}

}  // namespace

std::string file_address(const std::string& path) {
  constexpr std::string_view kPlain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/";
  constexpr char kHex[] = "0123456789ABCDEF";
  std::string address = "file://";
  for (const char c : path) {
    if (kPlain.find(c) != std::string_view::npos) {
      address += c;
    } else {
      const auto byte = static_cast<uint8_t>(c);
      address += {'%', kHex[byte >> 4], kHex[byte & 15]};
    }
  }
  return address;
}

namespace {

// In place of a page that single calls are asked of: a session made of a capture that is none.
Result<ServedPage> session_of(const ConvertOptions& capture, std::ostream& err) {
  auto made = make_session(capture, err);
  if (!made.ok()) return made.error();
  ServedPage page;
  page.directory = std::move(made->directory);
  page.made = std::move(made->made);
  return page;
}

}  // namespace

int open_page(const OpenOptions& options, std::ostream& out, std::ostream& err) {
  ConvertOptions page = options.page;
  page.to = exports::Target::kHtml;
  page.look_names_up = true;
  std::error_code ignored;
  std::optional<ServedPage> served;
  for (std::string& input : page.inputs) {
    if (fs::is_regular_file(input, ignored)) {  // which may have to be unpacked: once is enough
      input = fs::absolute(input, ignored).lexically_normal().string();
      continue;
    }
    const auto trace = read::open_trace(input);
    if (!trace.ok()) {
      err << "collectctl: " << to_string(trace.error()) << "\n";
      return 2;
    }
    if (!trace->choice.empty()) err << "collectctl: " << printable_sentence(trace->choice) << "\n";
    input = fs::absolute(trace->path, ignored).lexically_normal().string();
    if (trace->kind == read::TraceKind::kSession) {
      served.emplace();
      served->directory = input;
      served->can_change = is_recording(*trace);
    }
  }
  const bool is_whole = !page.selection.is_part() && page.selection.functions.empty();
  if (!options.no_serve && page.inputs.size() == 1 && page.output.empty() && is_whole) {
    Status was_served;
    if (!served && fs::is_regular_file(page.inputs.front(), ignored)) {
      auto made = session_of(page, err);
      if (made.ok()) {
        served = std::move(*made);
      } else if (made.code() == Code::kDamaged) {  // which was said, and a file has no more of it
        return 2;
      } else {
        was_served = made.error();
      }
    }
    if (served) {
      served->no_browser = options.no_browser;
      was_served = serve_page(std::move(*served), out, err);
      if (was_served.ok()) return 0;
    }
    if (!was_served.ok()) {
      err << "collectctl: the page is a file, for it cannot be served: "
          << printable_sentence(to_string(was_served.error())) << "\n";
    }
  }
  if (page.output.empty()) {
    const auto directory = page_directory();
    if (!directory.ok()) {
      err << "collectctl: " << to_string(directory.error()) << "\n";
      return 2;
    }
    page.output = *directory / page_name(page.inputs);
    fs::remove(page.output, ignored);  // so that one that is there afterwards is this one
    remove_old_pages(*directory);
  }
  std::ostringstream sizes;  // of the page: no one asked
  const int converted = convert(page, sizes, err);
  if (converted == 2 || !fs::exists(page.output, ignored)) return converted;
  const std::string address = file_address(fs::absolute(page.output, ignored).string());
  out << address << "\n";
  out.flush();
  return options.no_browser || show_in_browser(address, err) ? 0 : 1;
}

}  // namespace collect::ctl

#include "tests/daemon/ctl/export/part_forms.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

namespace collect::ctl::testing {
namespace {

using nlohmann::json;

json sorted(json list) {
  std::sort(list.begin(), list.end());
  return list;
}

// Slices from begins and ends, those of each track in each other.
class OpenSlices {
 public:
  void begin(const std::string& track, uint64_t ns, const json& name) {
    open_[track].push_back(slices_.size());
    slices_.push_back({ns, nullptr, name});
  }
  void end(const std::string& track, uint64_t ns) {
    json& slice = slices_[open_.at(track).back()];
    open_[track].pop_back();
    slice[1] = ns - slice[0].get<uint64_t>();
  }
  json take() { return sorted(std::move(slices_)); }

 private:
  json slices_ = json::array();
  std::map<std::string, std::vector<size_t>> open_;
};

uint64_t ns_of(uint64_t origin_ns, const json& microseconds) {
  return origin_ns + static_cast<uint64_t>(std::llround(microseconds.get<double>() * 1000));
}

json stacks_of(const std::map<std::pair<std::string, json>, std::pair<uint64_t, uint64_t>>& all) {
  json list = json::array();
  for (const auto& [where, times] : all) {
    if (times.first == 0 && times.second == 0) continue;
    list.push_back({where.first, where.second, times.first, times.second});
  }
  return list;
}

}  // namespace

json slices_of_perfetto(const json& file, bool calls_only) {
  json slices = json::array();
  for (const auto& [name, track] : file["tracks"].items()) {
    for (const json& slice : track.value("slices", json::array())) {
      const std::string what = slice["name"];
      if (calls_only && (what.starts_with("lost: ") || what.starts_with("stall: "))) continue;
      slices.push_back({slice["ts"], slice["dur"], what});
    }
  }
  return sorted(std::move(slices));
}

json slices_of_chrome(const json& file) {
  const uint64_t origin_ns = origin_of_chrome(file);
  OpenSlices slices;
  for (const json& event : file["traceEvents"]) {
    const std::string phase = event["ph"];
    const bool is_call = phase == "B" || phase == "E";
    if (!is_call && phase != "b" && phase != "e") continue;
    const std::string track = is_call ? event["pid"].dump() + "/" + event["tid"].dump()
                                      : "interval " + event["id"].dump();
    const uint64_t ns = ns_of(origin_ns, event["ts"]);
    if (phase == "B" || phase == "b") {
      slices.begin(track, ns, event["name"]);
    } else {
      slices.end(track, ns);
    }
  }
  return slices.take();
}

json slices_of_speedscope(const json& file, uint64_t origin_ns) {
  OpenSlices slices;
  for (const json& profile : file["profiles"]) {
    for (const json& event : profile["events"]) {
      const std::string name = file["shared"]["frames"][event["frame"].get<size_t>()]["name"];
      if (name.starts_with("[")) continue;
      const uint64_t ns = origin_ns + event["at"].get<uint64_t>();
      if (event["type"] == "O") {
        slices.begin("", ns, name);
      } else {
        slices.end("", ns);
      }
    }
  }
  return slices.take();
}

json rates_of_perfetto(const json& file) {
  json rates = json::array();
  for (const auto& [name, track] : file["tracks"].items()) {
    for (const json& rate : track.value("counts", json::array())) rates.push_back(rate);
  }
  return sorted(std::move(rates));
}

json rates_of_chrome(const json& file) {
  json rates = json::array();
  for (const json& event : file["traceEvents"]) {
    if (event["ph"] != "C") continue;
    rates.push_back({ns_of(origin_of_chrome(file), event["ts"]), event["args"]["value"]});
  }
  return sorted(std::move(rates));
}

json stacks_of_profile(const json& file) {
  std::map<std::pair<std::string, json>, std::pair<uint64_t, uint64_t>> all;
  for (const json& sample : file["samples"]) {
    if (sample["stack"] == json::array({"[stalled]"})) continue;
    const std::string thread = sample["labels"]["thread"];
    auto& times = all[std::pair(thread, sample["stack"])];
    times.first += sample["values"][0].get<uint64_t>();
    times.second += sample["values"][1].get<uint64_t>();
  }
  return stacks_of(all);
}

json stacks_of_page(const json& page) {
  std::map<std::pair<std::string, json>, std::pair<uint64_t, uint64_t>> all;
  for (const json& thread : page["threads"]) {
    // "main (100)", "thread (101)" where it has no name; of several sessions: "app: main (100)".
    std::string shown = thread["name"];
    if (const size_t process = shown.find(": "); process != std::string::npos) {
      shown.erase(0, process + 2);
    }
    const size_t at = shown.rfind(" (");
    std::string name = shown.substr(0, at);
    if (name == "thread") name += " " + shown.substr(at + 2, shown.size() - at - 3);
    const json& tree = thread["tree"];
    for (size_t i = 1; i < tree["name"].size(); ++i) {
      std::vector<json> stack;
      for (size_t at_node = i; at_node != 0; at_node = tree["parent"][at_node].get<size_t>()) {
        const int64_t number = tree["name"][at_node].get<int64_t>();
        stack.push_back(number == -2 ? json("[caller lost]")
                        : number < 0 ? json("[other stacks]")
                                     : page["names"][static_cast<size_t>(number)]);
      }
      std::reverse(stack.begin(), stack.end());
      auto& times = all[std::pair(name, json(stack))];
      times.first += tree["calls"][i].get<uint64_t>();
      times.second += tree["self"][i].get<uint64_t>();
    }
  }
  return stacks_of(all);
}

std::string folded_of_profile(const json& file, bool has_devices) {
  std::string text;
  for (const json& sample : file["samples"]) {
    if (sample["values"][1] == 0) continue;
    const json& labels = sample["labels"];
    const std::string device = labels.value("device", "");
    if (has_devices && !device.empty()) text += device + ": ";
    text += labels["process"].get<std::string>() + ";" + labels["thread"].get<std::string>();
    for (const json& frame : sample["stack"]) text += ";" + frame.get<std::string>();
    text += " " + sample["values"][1].dump() + "\n";
  }
  return text;
}

uint64_t origin_of_chrome(const json& file) {
  return std::stoull(file["otherData"]["origin_ns"].get<std::string>());
}

}  // namespace collect::ctl::testing

#include "tests/formats/wtf/built_file.h"

#include <cmath>
#include <cstring>

#include "formats/wtf/text.h"

namespace collect::wtf::testing {
namespace {

// These files are the ground that tests stand on.
void must(const Status& status) {
  COLLECT_CHECK(status.ok());
}

// Values are compared as text; floats by their bits.
std::string float_text(float value) {
  return "f" + std::to_string(std::bit_cast<uint32_t>(value));
}

std::string text_of_value(const Value& value) {
  const Argument& argument = *value.argument;
  if (!value.present()) return "null";
  if (is_string(argument.type)) return "'" + std::string(value.text) + "'";
  const bool real = argument.type == ArgType::kFloat32;
  if (!argument.array) return real ? float_text(value.real()) : std::to_string(value.integer());
  std::string text = "[";
  for (size_t i = 0; i < value.count; ++i) {
    text += (real ? float_text(value.real_element(i)) : std::to_string(value.element(i))) + " ";
  }
  return text + "]";
}

class Generator {
 public:
  Generator(uint32_t seed, size_t chunk_bytes)
      : random_(seed), writer_(sink_, options(chunk_bytes)) {}

  RandomFile run(size_t events);

 private:
  static WriterOptions options(size_t chunk_bytes) {
    WriterOptions options;
    options.epoch_ns = 5'000'000'000;
    options.chunk_bytes = chunk_bytes;
    return options;
  }
  uint32_t below(uint32_t bound) { return static_cast<uint32_t>(random_()) % bound; }
  std::string random_text();
  std::string random_json(int depth);
  void define_types();
  void write_event();
  void make_argument(const Argument& argument, std::string& line);
  template <class T>
  void make_array(std::string& line);

  std::mt19937 random_;
  VectorSink sink_;
  Writer writer_;
  RandomFile made_;
  std::vector<uint32_t> types_;
  std::vector<std::vector<Argument>> arguments_;
  std::vector<std::string> names_;
  std::vector<uint64_t> ns_;  // by zone
  std::vector<size_t> depth_;
  std::vector<Arg> args_;
  std::vector<std::string> texts_;
  std::vector<std::vector<uint8_t>> arrays_;
};

std::string Generator::random_text() {
  static const char* const kPieces[] = {"a",  "Scene::draw", "世界", "\n", "\"", "\\",   " ",   "(",
                                        "%c", "é",           "😀",   "<>", "0",  "\x7f", "\x01"};
  std::string text;
  for (uint32_t i = below(6); i > 0; --i) text += kPieces[below(std::size(kPieces))];
  if (below(50) == 0) text += std::string(5000 + below(5000), 'x');
  return text;
}

std::string Generator::random_json(int depth) {
  std::string out;
  switch (below(depth > 3 ? 4 : 6)) {
    case 0:
      return "null";
    case 1:
      return "true";
    case 2:
      append_number(out, static_cast<double>(static_cast<int32_t>(random_())) / 256.0);
      return out;
    case 3:
      append_json_string(out, random_text());
      return out;
    case 4:
      return "[" + random_json(depth + 1) + "," + random_json(depth + 1) + "]";
    default:
      append_json_string(out, random_text());
      return "{" + out + ": " + random_json(depth + 1) + "}";
  }
}

void Generator::define_types() {
  for (uint32_t i = 0; i < 12; ++i) {
    std::vector<Argument> arguments;
    for (uint32_t n = i == 0 ? 0 : below(7); n > 0; --n) {
      Argument argument;
      argument.type = static_cast<ArgType>(below(15));
      argument.array = may_be_array(argument.type) && below(3) == 0;
      argument.name = "a" + std::to_string(arguments.size());
      arguments.push_back(argument);
    }
    const std::string name = safe_event_name("type " + std::to_string(i) + random_text());
    const bool scope = i < 6;
    const auto type =
        writer_.define(scope ? kClassScope : kClassInstance, 0, name, print_signature(arguments));
    types_.push_back(type.value());
    arguments_.push_back(std::move(arguments));
    names_.push_back(name);
  }
}

template <class T>
void Generator::make_array(std::string& line) {
  std::vector<T> elements(below(9));
  line += "[";
  for (T& element : elements) {
    const uint32_t bits = static_cast<uint32_t>(random_());
    std::memcpy(&element, &bits, sizeof element);
    if constexpr (std::is_same_v<T, float>) {
      line += float_text(element) + " ";
    } else {
      const int64_t shown =
          std::is_same_v<T, char> ? static_cast<uint8_t>(element) : static_cast<int64_t>(element);
      line += std::to_string(shown) + " ";
    }
  }
  line += "]";
  auto& bytes = arrays_.emplace_back(elements.size() * sizeof(T));
  if (!bytes.empty()) std::memcpy(bytes.data(), elements.data(), bytes.size());
  args_.push_back(
      Arg::array(std::span<const T>(reinterpret_cast<const T*>(bytes.data()), elements.size())));
}

void Generator::make_argument(const Argument& argument, std::string& line) {
  line += " " + argument.name + "=";
  if ((argument.array || is_string(argument.type)) && below(8) == 0) {
    args_.emplace_back();
    line += "null";
    return;
  }
  const auto bits = static_cast<uint32_t>(random_());
  const auto integer = [&](int64_t value) {
    args_.emplace_back(value);
    line += std::to_string(value);
  };
  const bool array = argument.array;
  switch (argument.type) {
    case ArgType::kBool:
      return integer(bits & 1);
    case ArgType::kInt8:
      return array ? make_array<int8_t>(line) : integer(static_cast<int8_t>(bits));
    case ArgType::kUint8:
      return array ? make_array<uint8_t>(line) : integer(static_cast<uint8_t>(bits));
    case ArgType::kInt16:
      return array ? make_array<int16_t>(line) : integer(static_cast<int16_t>(bits));
    case ArgType::kUint16:
      return array ? make_array<uint16_t>(line) : integer(static_cast<uint16_t>(bits));
    case ArgType::kInt32:
      return array ? make_array<int32_t>(line) : integer(static_cast<int32_t>(bits));
    case ArgType::kUint32:
      return array ? make_array<uint32_t>(line) : integer(bits);
    case ArgType::kChar:
      return array ? make_array<char>(line) : integer(static_cast<uint8_t>(bits));
    case ArgType::kWchar:
      return array ? make_array<char16_t>(line) : integer(static_cast<uint16_t>(bits));
    case ArgType::kFloat32:
      if (array) return make_array<float>(line);
      args_.emplace_back(std::bit_cast<float>(bits));
      line += float_text(std::bit_cast<float>(bits));
      return;
    case ArgType::kFlowId:
    case ArgType::kTime32:
      return integer(bits);
    case ArgType::kAscii:
    case ArgType::kUtf8:
      texts_.push_back(random_text());
      break;
    case ArgType::kAny:
      texts_.push_back(random_json(0));
      break;
  }
  args_.emplace_back(texts_.back());
  line += "'" + texts_.back() + "'";
}

void Generator::write_event() {
  const auto zone = static_cast<uint16_t>(1 + below(3));
  must(writer_.set_zone(zone));
  ns_[zone] += below(5000);
  const std::string head = "zone " + std::to_string(zone) + " | ";
  const std::string time = " | " + std::to_string((ns_[zone] - 5'000'000'000) / 1000) + " |";
  if (below(3) == 0 && depth_[zone] != 0) {
    --depth_[zone];
    must(writer_.leave(ns_[zone]));
    made_.lines.push_back(head + "wtf.scope#leave" + time);
    return;
  }
  if (below(40) == 0) {
    const std::string name = random_text();
    const std::string json = random_json(0);
    must(writer_.mark(ns_[zone], name, json));
    made_.lines.push_back(head + "wtf.trace#mark" + time + " name='" + name + "' value='" + json +
                          "'");
    return;
  }
  const uint32_t which = below(static_cast<uint32_t>(types_.size()));
  args_.clear();
  texts_.clear();
  arrays_.clear();
  texts_.reserve(16);
  arrays_.reserve(16);
  std::string line = head + names_[which] + time;
  for (const Argument& argument : arguments_[which]) make_argument(argument, line);
  if (which < 6) {
    ++depth_[zone];
    must(which == 0 ? writer_.enter(types_[which], ns_[zone])
                    : writer_.enter(types_[which], ns_[zone], args_));
  } else {
    must(writer_.event(types_[which], ns_[zone], args_));
  }
  made_.lines.push_back(std::move(line));
}

RandomFile Generator::run(size_t events) {
  must(writer_.begin(FileHeader{}));
  ns_.assign(4, 5'000'000'000);
  depth_.assign(4, 0);
  for (int zone = 1; zone <= 3; ++zone) {
    COLLECT_CHECK(writer_.create_zone("zone " + std::to_string(zone)).ok());
  }
  define_types();
  for (size_t i = 0; i < events; ++i) write_event();
  for (uint16_t zone = 1; zone <= 3; ++zone) {
    must(writer_.set_zone(zone));
    for (; depth_[zone] != 0; --depth_[zone]) {
      must(writer_.leave(ns_[zone]));
      made_.lines.push_back("zone " + std::to_string(zone) + " | wtf.scope#leave | " +
                            std::to_string((ns_[zone] - 5'000'000'000) / 1000) + " |");
    }
  }
  must(writer_.finish());
  made_.bytes = sink_.bytes();
  return std::move(made_);
}

}  // namespace

std::string line_of(const std::string& zone, const Event& event) {
  std::string line = zone + " | " + event.type->name + " | " + std::to_string(event.time_us) + " |";
  Value value;
  for (Arguments walk = event.arguments(); walk.next(value);) {
    line += " " + value.argument->name + "=" + text_of_value(value);
  }
  return line;
}

std::vector<std::string> lines_of(Bytes file, Findings& findings) {
  std::vector<std::string> lines;
  auto reader = Reader::open(file, findings);
  if (!reader) return lines;
  for (Event event; (*reader)->next(event);) {
    lines.push_back(line_of((*reader)->zones()[event.zone].name.value_or("null"), event));
  }
  return lines;
}

RandomFile random_file(uint32_t seed, size_t events, size_t chunk_bytes) {
  return Generator(seed, chunk_bytes).run(events);
}

std::vector<uint8_t> build_file(size_t chunk_bytes) {
  VectorSink sink;
  Writer w(sink, {.epoch_ns = 1'000'000, .chunk_bytes = chunk_bytes});
  const auto at = [](uint64_t us) { return 1'000'000 + us * 1000; };
  FileHeader header;
  header.timebase_ms = 1700000000000.0;
  header.context->title = "built";
  must(w.begin(header));
  const uint16_t main = w.create_zone(thread_zone_name("app", 7, "main", 7), "script", "l").value();
  const uint16_t other = w.create_zone("worker", "native_script", std::nullopt).value();
  const uint32_t work = w.define_scope("app::Work<int>(x)", "uint32 n, ascii label").value();
  const uint32_t plain = w.define_scope("plain").value();
  const uint32_t ping = w.define_instance("ping", "int32 v, uint8[] b, any j").value();
  must(w.set_zone(main));
  must(w.start_frame(at(1), 1));
  must(w.enter(work, at(10), {7, "hello"}));
  must(w.enter(plain, at(20)));
  const uint8_t bytes[] = {1, 2, 3, 4, 5};
  must(
      w.event(ping, at(25), {-5, Arg::array(std::span<const uint8_t>(bytes)), "{\"a\":[1,null]}"}));
  must(w.append_scope_data(at(26), "k", "[1.5]"));
  must(w.leave(at(30)));
  must(w.leave(at(40)));
  must(w.enter_named("named#scope", at(41)));
  must(w.set_zone(other));
  must(w.enter(work, at(15), {8, ""}));
  must(w.mark(at(16), "phase", "{\"p\":2}"));
  must(w.time_stamp(at(17), "stamp"));
  must(w.begin_range(at(18), 9, "range"));
  must(w.end_range(at(19), 9));
  must(w.branch_flow(at(20), 5, 0, "flow"));
  must(w.extend_flow(at(21), 5, "more", "1"));
  must(w.append_flow_data(at(22), 5, "data", "\"x\""));
  must(w.terminate_flow(at(23), 5));
  must(w.discontinuity(at(24)));
  COLLECT_CHECK(w.add_binary_resource(bytes).value() == 0);
  COLLECT_CHECK(w.add_string_resource("resource text").value() == 1);
  must(w.leave(at(50)));
  must(w.set_zone(main));
  must(w.leave(at(60)));
  must(w.end_frame(at(70), 1));
  must(w.finish());
  return sink.bytes();
}

}  // namespace collect::wtf::testing

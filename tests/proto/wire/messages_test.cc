// wire.proto twice: the agent's nanopb and the daemon's libprotobuf must agree on every message,
// and wire.options must hold the limits of layout.h.
#include <google/protobuf/descriptor.h>
#include <google/protobuf/dynamic_message.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>
#include <pb_decode.h>
#include <pb_encode.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "proto/wire/layout.h"
#include "proto/wire/proof.h"
#include "proto/wire/wire.nanopb.h"
#include "proto/wire/wire.pb.h"

namespace collect::wire {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

struct NanopbMessage {
  const char* name;
  const pb_msgdesc_t* fields;
  size_t struct_bytes;
  size_t max_bytes;  // as nanopb computed from wire.options
};

#define NANOPB(name) \
  {#name, collect_wire_##name##_fields, sizeof(collect_wire_##name), collect_wire_##name##_size}
const NanopbMessage kMessages[] = {NANOPB(Dial),
                                   NANOPB(Hello),
                                   NANOPB(Challenge),
                                   NANOPB(Proof),
                                   NANOPB(StreamPosition),
                                   NANOPB(Resume),
                                   NANOPB(Welcome),
                                   NANOPB(Refuse),
                                   NANOPB(RecordingStart),
                                   NANOPB(Module),
                                   NANOPB(Modules),
                                   NANOPB(StreamOpen),
                                   NANOPB(StreamClose),
                                   NANOPB(DetailState),
                                   NANOPB(ProcessEnd),
                                   NANOPB(RecordingEnd),
                                   NANOPB(Stall),
                                   NANOPB(Stalls),
                                   NANOPB(Ack),
                                   NANOPB(Command),
                                   NANOPB(StartRecording),
                                   NANOPB(StopRecording),
                                   NANOPB(Flush),
                                   NANOPB(WantFunctionFilter),
                                   NANOPB(SetDetail),
                                   NANOPB(SetFunctionFilter),
                                   NANOPB(SetBuffering),
                                   NANOPB(Counter),
                                   NANOPB(Counters),
                                   NANOPB(CommandResult),
                                   NANOPB(ClockProbe),
                                   NANOPB(ClockReply),
                                   NANOPB(Heartbeat),
                                   NANOPB(Bye)};
#undef NANOPB

const Descriptor* descriptor_of(const std::string& name) {
  return google::protobuf::DescriptorPool::generated_pool()->FindMessageTypeByName("collect.wire." +
                                                                                   name);
}

std::unique_ptr<Message> new_message(const std::string& name) {
  const Descriptor* descriptor = descriptor_of(name);
  return std::unique_ptr<Message>(
      google::protobuf::MessageFactory::generated_factory()->GetPrototype(descriptor)->New());
}

// Distinct, large values in every field; lists and strings short enough for any limit but given
// ones.
void fill(Message& message, int seed) {
  const auto* reflection = message.GetReflection();
  const Descriptor* descriptor = message.GetDescriptor();
  for (int i = 0; i < descriptor->field_count(); ++i) {
    const FieldDescriptor* field = descriptor->field(i);
    const int count = field->is_repeated() ? 3 : 1;
    // Of a oneof, the field that the seed picks.
    if (field->real_containing_oneof() != nullptr &&
        seed % field->real_containing_oneof()->field_count() != field->index_in_oneof()) {
      continue;
    }
    for (int n = 0; n < count; ++n) {
      const uint64_t value = 0xFEDCBA9876543210u + static_cast<uint64_t>(seed * 1000 + i * 10 + n);
      const auto small = static_cast<uint32_t>(value);
      const bool is_id = field->name() == "process_id" || field->name() == "nonce";
      const std::string bytes = is_id ? "0123456789abcdef" : "v" + std::to_string(seed + i + n);
      const bool many = field->is_repeated();
      switch (field->cpp_type()) {
        case FieldDescriptor::CPPTYPE_UINT64:
          many ? reflection->AddUInt64(&message, field, value)
               : reflection->SetUInt64(&message, field, value);
          break;
        case FieldDescriptor::CPPTYPE_UINT32:
          many ? reflection->AddUInt32(&message, field, small)
               : reflection->SetUInt32(&message, field, small);
          break;
        case FieldDescriptor::CPPTYPE_INT64:
          reflection->SetInt64(&message, field, -static_cast<int64_t>(value));
          break;
        case FieldDescriptor::CPPTYPE_INT32:
          reflection->SetInt32(&message, field, -static_cast<int32_t>(small % 1000) - 1);
          break;
        case FieldDescriptor::CPPTYPE_BOOL:
          reflection->SetBool(&message, field, true);
          break;
        case FieldDescriptor::CPPTYPE_ENUM:
          reflection->SetEnumValue(&message, field, 1);
          break;
        case FieldDescriptor::CPPTYPE_STRING:
          reflection->SetString(&message, field, bytes);
          break;
        case FieldDescriptor::CPPTYPE_MESSAGE:
          fill(many ? *reflection->AddMessage(&message, field)
                    : *reflection->MutableMessage(&message, field),
               seed + n);
          break;
        default:
          FAIL() << "a type that this test does not know: " << field->full_name();
      }
    }
  }
}

bool nanopb_decode(const NanopbMessage& type, const std::string& bytes, void* out) {
  pb_istream_t stream =
      pb_istream_from_buffer(reinterpret_cast<const pb_byte_t*>(bytes.data()), bytes.size());
  return pb_decode(&stream, type.fields, out);
}

std::string nanopb_encode(const NanopbMessage& type, const void* message) {
  std::string bytes(type.max_bytes + 1, '\0');
  pb_ostream_t stream =
      pb_ostream_from_buffer(reinterpret_cast<pb_byte_t*>(bytes.data()), bytes.size());
  EXPECT_TRUE(pb_encode(&stream, type.fields, message)) << type.name;
  bytes.resize(stream.bytes_written);
  return bytes;
}

TEST(Messages, AllOfThemAreInTheTable) {
  std::vector<std::string> known;
  for (const NanopbMessage& type : kMessages) known.push_back(type.name);
  const auto* file = descriptor_of("Hello")->file();
  for (int i = 0; i < file->message_type_count(); ++i) {
    EXPECT_NE(std::find(known.begin(), known.end(), file->message_type(i)->name()), known.end())
        << file->message_type(i)->name();
  }
}

TEST(Messages, NanopbAndLibprotobufAgree) {
  for (const NanopbMessage& type : kMessages) {
    for (int seed = 0; seed < 5; ++seed) {
      const auto original = new_message(type.name);
      fill(*original, seed);
      std::vector<uint64_t> storage(type.struct_bytes / 8 + 1);
      ASSERT_TRUE(nanopb_decode(type, original->SerializeAsString(), storage.data())) << type.name;
      const auto back = new_message(type.name);
      ASSERT_TRUE(back->ParseFromString(nanopb_encode(type, storage.data()))) << type.name;
      std::string difference;
      google::protobuf::util::MessageDifferencer differencer;
      differencer.ReportDifferencesToString(&difference);
      EXPECT_TRUE(differencer.Compare(*original, *back)) << type.name << ": " << difference;
    }
  }
}

// A message and, right behind it, bytes that a decoder which forgets a limit would overwrite.
class GuardedStorage {
 public:
  explicit GuardedStorage(size_t struct_bytes)
      : struct_bytes_(struct_bytes), words_((struct_bytes + kGuardBytes) / 8 + 1) {
    std::memset(bytes() + struct_bytes_, kGuard, kGuardBytes);
  }
  void* message() { return words_.data(); }
  bool is_intact() {
    for (size_t i = 0; i < kGuardBytes; ++i) {
      if (bytes()[struct_bytes_ + i] != kGuard) return false;
    }
    return true;
  }

 private:
  static constexpr size_t kGuardBytes = 512;
  static constexpr uint8_t kGuard = 0xA5;
  uint8_t* bytes() { return reinterpret_cast<uint8_t*>(words_.data()); }

  size_t struct_bytes_;
  std::vector<uint64_t> words_;
};

TEST(Messages, NoPrefixAndNoFlipWritesBeyondTheMessage) {
  google::protobuf::LogHandler* const before = google::protobuf::SetLogHandler(nullptr);
  for (const NanopbMessage& type : kMessages) {
    const auto original = new_message(type.name);
    fill(*original, 2);
    const std::string whole = original->SerializeAsString();
    GuardedStorage storage(type.struct_bytes);
    for (size_t length = 0; length <= whole.size(); ++length) {
      (void)nanopb_decode(type, whole.substr(0, length), storage.message());
      ASSERT_TRUE(storage.is_intact()) << type.name << " cut at " << length;
    }
    for (size_t at = 0; at < whole.size(); ++at) {
      for (int bit = 0; bit < 8; ++bit) {
        std::string flipped = whole;
        flipped[at] = static_cast<char>(flipped[at] ^ (1 << bit));
        (void)new_message(type.name)->ParseFromString(flipped);
        (void)nanopb_decode(type, flipped, storage.message());
        ASSERT_TRUE(storage.is_intact()) << type.name << " byte " << at << " bit " << bit;
      }
    }
  }
  google::protobuf::SetLogHandler(before);
}

// wire.options says how much the agent takes; layout.h and WIRE.md say how much may be sent.
template <class Array>
constexpr size_t length_of(const Array& array) {
  return sizeof(array) / sizeof(array[0]);
}

TEST(Messages, OptionsHoldTheLimitsOfLayout) {
  static collect_wire_Command command;
  EXPECT_EQ(length_of(command.what.set_detail.thread_ids), kMaxFilterThreads);
  EXPECT_EQ(length_of(command.what.set_detail.function_ids), kMaxFilterFunctions);
  EXPECT_EQ(length_of(command.what.set_function_filter.function_ids), kMaxFilterFunctions);
  EXPECT_EQ(length_of(collect_wire_Modules{}.modules), kMaxModulesPerFrame);
  EXPECT_EQ(length_of(collect_wire_Ack{}.positions), kMaxAcksPerFrame);
  EXPECT_EQ(length_of(collect_wire_Resume{}.positions), kMaxResumesPerFrame);
  EXPECT_EQ(length_of(collect_wire_Stalls{}.stalls), kMaxStallsPerFrame);
  EXPECT_EQ(sizeof collect_wire_Hello{}.process_id, kProcessIdBytes);
  EXPECT_EQ(sizeof collect_wire_Hello{}.nonce, kNonceBytes);
  EXPECT_EQ(sizeof collect_wire_Challenge{}.nonce.bytes, kNonceBytes);
  EXPECT_EQ(sizeof collect_wire_Challenge{}.token_proof.bytes, kProofBytes);
  EXPECT_EQ(sizeof collect_wire_Proof{}.token_proof.bytes, kProofBytes);
  EXPECT_EQ(sizeof collect_wire_Proof{}.resume_proof.bytes, kProofBytes);
  EXPECT_EQ(sizeof collect_wire_Welcome{}.resume_key.bytes, kResumeKeyBytes);
  EXPECT_EQ(sizeof collect_wire_WantFunctionFilter{}.only, kMaxFilterText + 1);
  EXPECT_EQ(sizeof collect_wire_Counter{}.name, kMaxCounterName + 1);
  EXPECT_EQ(length_of(collect_wire_Counters{}.counters), kMaxCounters);
  EXPECT_EQ(sizeof collect_wire_WantFunctionFilter{}.except, kMaxFilterText + 1);
  for (const NanopbMessage& type : kMessages) EXPECT_LE(type.max_bytes, kMaxControlBody);
}

TEST(Messages, LimitsAndOneMore) {
  const NanopbMessage& command =
      *std::find_if(std::begin(kMessages), std::end(kMessages),
                    [](const NanopbMessage& type) { return std::string(type.name) == "Command"; });
  std::vector<uint64_t> storage(command.struct_bytes / 8 + 1);
  Command wanted;
  for (uint32_t i = 0; i < kMaxFilterFunctions; ++i) {
    wanted.mutable_set_detail()->add_function_ids(UINT64_MAX - i);
  }
  for (uint32_t i = 0; i < kMaxFilterThreads; ++i) {
    wanted.mutable_set_detail()->add_thread_ids(UINT32_MAX - i);
  }
  EXPECT_TRUE(nanopb_decode(command, wanted.SerializeAsString(), storage.data()));
  Command more = wanted;
  more.mutable_set_detail()->add_function_ids(1);
  EXPECT_FALSE(nanopb_decode(command, more.SerializeAsString(), storage.data()));
  more = wanted;
  more.mutable_set_detail()->add_thread_ids(1);
  EXPECT_FALSE(nanopb_decode(command, more.SerializeAsString(), storage.data()));
}

TEST(Messages, FieldsOfALaterVersionAreSkipped) {
  Welcome welcome;
  welcome.set_version(1);
  welcome.set_collector("c");
  // Field 1000, length-delimited, three bytes; and field 1001, a varint.
  const std::string bytes = welcome.SerializeAsString() +
                            "\xc2\x3e\x03"
                            "abc"
                            "\xc8\x3e\x05";
  collect_wire_Welcome out = collect_wire_Welcome_init_zero;
  pb_istream_t stream =
      pb_istream_from_buffer(reinterpret_cast<const pb_byte_t*>(bytes.data()), bytes.size());
  ASSERT_TRUE(pb_decode(&stream, collect_wire_Welcome_fields, &out));
  EXPECT_EQ(out.version, 1u);
  EXPECT_STREQ(out.collector, "c");
}

}  // namespace
}  // namespace collect::wire

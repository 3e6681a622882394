// The conversions between two formats, which convert() chooses from.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "formats/core/byte_sink.h"
#include "formats/core/bytes.h"
#include "formats/core/result.h"
#include "storage/convert/convert.h"

namespace collect::convert {

class SessionBuilder;

// From an ATF session into `output`. A format whose files end early by their own rules makes more
// of them: "trace.wtf-trace", "trace.2.wtf-trace", …
Status atf_to_rtc(const read::Trace& trace, const std::string& output, ConvertLog& log);
// The container alone; how many events are in it. `directory` is for what has to be put in order.
Result<uint64_t> write_container(const read::Trace& trace, ByteSink& out,
                                 const std::string& directory, ConvertLog& log);
Status atf_to_wtf(const read::Trace& trace, const std::string& output, ConvertLog& log);
Status atf_to_dial9(const read::Trace& trace, const std::string& output, ConvertLog& log);

// Within one format, without a session in between: everything is kept (same_format.cc). A session
// into another one: a copy of every file, below `root`; where the copy is (copy_session.cc).
Result<std::string> copy_session(const read::Trace& trace, const std::string& root,
                                 ConvertLog& log);
// Several in order, into one.
Status rtc_to_rtc(const Options& options, std::span<const Bytes> files, ConvertLog& log);
Status wtf_to_wtf(const Options& options, Bytes file, ConvertLog& log);
Status dial9_to_dial9(const Options& options, Bytes file, ConvertLog& log);

// Into an ATF session.
Status wtf_to_atf(Bytes file, SessionBuilder& session, ConvertLog& log);
Status dial9_to_atf(Bytes file, SessionBuilder& session, ConvertLog& log);
// One of the formats of other programs, which is_timeline(). `directory` is for what has to be put
// in order, `path` for messages.
Status timeline_to_atf(read::CaptureKind kind, const std::string& path, Bytes file,
                       const std::string& directory, SessionBuilder& session, ConvertLog& log);

}  // namespace collect::convert

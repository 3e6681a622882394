// What a reader of WTF-trace can find wrong, with the rule that was broken.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "formats/core/findings.h"

namespace collect::wtf {

// Which rule of FORMAT.md "What a reader checks" was broken.
enum class Rule : uint8_t {
  kFileHeader,         // refused: no magic, too short
  kVersion,            // refused: a format version that we do not read
  kFileLength,         // length of the file: under 48 bytes or not a multiple of 4
  kTrailing,           // bytes behind the last chunk that are no chunk
  kTruncated,          // the file ends within a chunk
  kChunkHeader,        // a chunk's length or part table contradicts itself
  kChunkUnknown,       // chunk of an unknown type
  kPartRange,          // a part reaches out of its chunk
  kPartLayout,         // parts overlap or leave gaps: a rewritten file will differ
  kPartPlacement,      // a known part in the wrong chunk
  kPartUnknown,        // part of an unknown type
  kPartRepeated,       // a second event buffer or string table: the last one is used
  kEventBuffer,        // event chunk without a binary event buffer
  kEventBufferLength,  // not a multiple of 4
  kStringTable,        // event chunk without a string table
  kHeaderMissing,      // no header chunk
  kHeaderOrder,        // the header chunk is not the first
  kHeaderJson,         // the header is not what it has to be
  kWireId,             // event with an undefined wire id: the rest of its buffer is unreadable
  kEventCut,           // the last event's arguments are cut off
  kEventTrailing,      // a word behind the last event
  kDefinition,         // argument list that cannot be read
  kDefinitionName,     // argument names: repeated, or cut at an odd character
  kRedefinition,       // a wire id or a name defined again with another signature
  kRenamed,            // a copy has other names, since the format cannot hold these
  kDefineReserved,     // wire id 1 defined as something else
  kEventName,          // a name with a line end, which may break the viewer
  kBuiltinSignature,   // a builtin event defined with arguments that are not its own
  kZoneUndefined,      // zone#set of an id that was never created
  kZoneBuiltin,        // zone events without the BUILTIN flag: they have no effect
  kZoneMerged,         // two zones with equal name, type and location
  kZoneMissing,        // events before any zone
  kOrdinal,            // string ordinal out of range: read as null
  kEmptyEntry,         // ordinal of an empty table entry: read as null
  kStringText,         // a string that is not UTF-8
  kAnyEmpty,           // the empty string as an `any` value
  kAnyJson,            // an `any` value that is not JSON
  kScopeName,          // a name in scope#enter or timeStamp that the viewer does not keep
  kScopeNameFatal,     // one that it breaks on
  kScopeDepth,         // nested deeper than the viewer builds
  kScopeUnbalanced,    // leaves without enter, scopes never left
  kTimeOrder,          // times step back within a zone
  kFrameAtZero,        // a frame that begins at time 0, which the viewer loses
  kJsonSyntax,         // JSON form: not JSON, or nested too deeply
  kJsonShape,          // JSON form: JSON, but not of the documented shape
  kJsonValue,          // JSON form: a value that does not fit its argument
  kJsonLossy,          // JSON form: a number that the binary form cuts
  kLimit,              // a limit of ours: more was there
};

// "chunk-header" and so on, for programs.
std::string_view rule_name(Rule rule);

// Whether the published viewer's library refuses a file in which this was found.
bool viewer_refuses(Rule rule);

struct Finding {
  Severity severity = Severity::kError;
  Rule rule = Rule::kFileHeader;
  uint64_t offset = 0;   // in the file
  std::string sentence;  // without path and offset
};

class Findings : public FindingList<Finding> {
 public:
  void add(Severity severity, Rule rule, uint64_t offset, std::string sentence) {
    note(severity, rule);
    FindingList::add({severity, rule, offset, std::move(sentence)});
  }
  template <class MakeSentence>
  void add_lazily(Severity severity, Rule rule, uint64_t offset, MakeSentence make_sentence) {
    note(severity, rule);
    FindingList::add_lazily(severity,
                            [&] { return Finding{severity, rule, offset, make_sentence()}; });
  }

  // Whether the rule was broken anywhere, listed or not.
  bool has(Rule rule) const { return (rules_ & bit(rule)) != 0; }
  bool viewer_refuses_any() const { return refused_; }
  // Whether every error is of one of these rules.
  bool errors_only(std::initializer_list<Rule> rules) const {
    uint64_t allowed = 0;
    for (const Rule rule : rules) allowed |= bit(rule);
    return (error_rules_ & ~allowed) == 0;
  }

 private:
  static uint64_t bit(Rule rule) { return uint64_t{1} << static_cast<unsigned>(rule); }
  void note(Severity severity, Rule rule) {
    rules_ |= bit(rule);
    if (severity == Severity::kError) error_rules_ |= bit(rule);
    refused_ = refused_ || viewer_refuses(rule);
  }

  uint64_t rules_ = 0;
  uint64_t error_rules_ = 0;
  bool refused_ = false;
};
static_assert(static_cast<unsigned>(Rule::kLimit) < 64);

}  // namespace collect::wtf

#include "formats/wtf/finding.h"

namespace collect::wtf {

std::string_view rule_name(Rule rule) {
  switch (rule) {
    case Rule::kFileHeader:
      return "file-header";
    case Rule::kVersion:
      return "version";
    case Rule::kFileLength:
      return "file-length";
    case Rule::kTrailing:
      return "trailing";
    case Rule::kTruncated:
      return "truncated";
    case Rule::kChunkHeader:
      return "chunk-header";
    case Rule::kChunkUnknown:
      return "chunk-unknown";
    case Rule::kPartRange:
      return "part-range";
    case Rule::kPartLayout:
      return "part-layout";
    case Rule::kPartPlacement:
      return "part-placement";
    case Rule::kPartUnknown:
      return "part-unknown";
    case Rule::kPartRepeated:
      return "part-repeated";
    case Rule::kEventBuffer:
      return "event-buffer";
    case Rule::kEventBufferLength:
      return "event-buffer-length";
    case Rule::kStringTable:
      return "string-table";
    case Rule::kHeaderMissing:
      return "header-missing";
    case Rule::kHeaderOrder:
      return "header-order";
    case Rule::kHeaderJson:
      return "header-json";
    case Rule::kWireId:
      return "wire-id";
    case Rule::kEventCut:
      return "event-cut";
    case Rule::kEventTrailing:
      return "event-trailing";
    case Rule::kDefinition:
      return "definition";
    case Rule::kDefinitionName:
      return "definition-name";
    case Rule::kRedefinition:
      return "redefinition";
    case Rule::kRenamed:
      return "renamed";
    case Rule::kDefineReserved:
      return "define-reserved";
    case Rule::kEventName:
      return "event-name";
    case Rule::kBuiltinSignature:
      return "builtin-signature";
    case Rule::kZoneUndefined:
      return "zone-undefined";
    case Rule::kZoneBuiltin:
      return "zone-builtin";
    case Rule::kZoneMerged:
      return "zone-merged";
    case Rule::kZoneMissing:
      return "zone-missing";
    case Rule::kOrdinal:
      return "ordinal";
    case Rule::kEmptyEntry:
      return "empty-entry";
    case Rule::kStringText:
      return "string-text";
    case Rule::kAnyEmpty:
      return "any-empty";
    case Rule::kAnyJson:
      return "any-json";
    case Rule::kScopeName:
      return "scope-name";
    case Rule::kScopeNameFatal:
      return "scope-name-fatal";
    case Rule::kScopeDepth:
      return "scope-depth";
    case Rule::kScopeUnbalanced:
      return "scope-unbalanced";
    case Rule::kTimeOrder:
      return "time-order";
    case Rule::kFrameAtZero:
      return "frame-at-zero";
    case Rule::kJsonSyntax:
      return "json-syntax";
    case Rule::kJsonShape:
      return "json-shape";
    case Rule::kJsonValue:
      return "json-value";
    case Rule::kJsonLossy:
      return "json-lossy";
    case Rule::kLimit:
      return "limit";
  }
  return "unknown";
}

bool viewer_refuses(Rule rule) {
  switch (rule) {
    case Rule::kFileHeader:
    case Rule::kVersion:
    case Rule::kFileLength:
    case Rule::kTrailing:
    case Rule::kTruncated:
    case Rule::kChunkHeader:
    case Rule::kPartRange:
    case Rule::kPartPlacement:
    case Rule::kEventBuffer:
    case Rule::kEventBufferLength:
    case Rule::kStringTable:
    case Rule::kHeaderJson:
    case Rule::kWireId:
    case Rule::kEventTrailing:
    case Rule::kDefinition:
    case Rule::kZoneUndefined:
    case Rule::kAnyEmpty:
    case Rule::kAnyJson:
    case Rule::kScopeNameFatal:
    case Rule::kJsonSyntax:
    case Rule::kJsonShape:
      return true;
    default:
      return false;
  }
}

}  // namespace collect::wtf

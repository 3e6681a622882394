// The numbers of Parquet's parquet.thrift (format 2.11) that we write, by structure, and our
// limits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace collect::parquet {

inline constexpr std::string_view kMagic = "PAR1";  // first and last in a file

// How a value is in the file.
enum class PhysicalType : uint8_t { kInt32 = 1, kInt64 = 2, kDouble = 5, kByteArray = 6 };

enum class Encoding : uint8_t {
  kPlain = 0,
  kRle = 3,  // definition levels
  kDeltaBinaryPacked = 5,
  kRleDictionary = 8,
};

enum class PageType : uint8_t { kDictionaryPage = 2, kDataPageV2 = 3 };
enum class Repetition : uint8_t { kRequired = 0, kOptional = 1 };

inline constexpr int32_t kFormatVersion = 2;
inline constexpr int32_t kCodecZstd = 6;

// Numbers of fields. `k` and the field's name in parquet.thrift.
struct FileMetaDataField {
  static constexpr int16_t kVersion = 1;
  static constexpr int16_t kSchema = 2;
  static constexpr int16_t kNumRows = 3;
  static constexpr int16_t kRowGroups = 4;
  static constexpr int16_t kKeyValueMetadata = 5;
  static constexpr int16_t kCreatedBy = 6;
  static constexpr int16_t kColumnOrders = 7;
};
struct SchemaElementField {
  static constexpr int16_t kType = 1;
  static constexpr int16_t kRepetitionType = 3;
  static constexpr int16_t kName = 4;
  static constexpr int16_t kNumChildren = 5;
  static constexpr int16_t kConvertedType = 6;
  static constexpr int16_t kLogicalType = 10;
};
struct LogicalTypeField {  // a union
  static constexpr int16_t kString = 1;
  static constexpr int16_t kInteger = 10;
};
struct IntTypeField {
  static constexpr int16_t kBitWidth = 1;
  static constexpr int16_t kIsSigned = 2;
};
struct ColumnOrderField {  // a union
  static constexpr int16_t kTypeOrder = 1;
};
struct KeyValueField {
  static constexpr int16_t kKey = 1;
  static constexpr int16_t kValue = 2;
};
struct RowGroupField {
  static constexpr int16_t kColumns = 1;
  static constexpr int16_t kTotalByteSize = 2;
  static constexpr int16_t kNumRows = 3;
  static constexpr int16_t kFileOffset = 5;
  static constexpr int16_t kTotalCompressedSize = 6;
};
struct ColumnChunkField {
  static constexpr int16_t kFileOffset = 2;
  static constexpr int16_t kMetaData = 3;
};
struct ColumnMetaDataField {
  static constexpr int16_t kType = 1;
  static constexpr int16_t kEncodings = 2;
  static constexpr int16_t kPathInSchema = 3;
  static constexpr int16_t kCodec = 4;
  static constexpr int16_t kNumValues = 5;
  static constexpr int16_t kTotalUncompressedSize = 6;
  static constexpr int16_t kTotalCompressedSize = 7;
  static constexpr int16_t kDataPageOffset = 9;
  static constexpr int16_t kDictionaryPageOffset = 11;
  static constexpr int16_t kStatistics = 12;
};
struct StatisticsField {
  static constexpr int16_t kNullCount = 3;
  static constexpr int16_t kMaxValue = 5;
  static constexpr int16_t kMinValue = 6;
  static constexpr int16_t kIsMaxValueExact = 7;
  static constexpr int16_t kIsMinValueExact = 8;
};
struct PageHeaderField {
  static constexpr int16_t kType = 1;
  static constexpr int16_t kUncompressedPageSize = 2;
  static constexpr int16_t kCompressedPageSize = 3;
  static constexpr int16_t kCrc = 4;
  static constexpr int16_t kDictionaryPageHeader = 7;
  static constexpr int16_t kDataPageHeaderV2 = 8;
};
struct DictionaryPageHeaderField {
  static constexpr int16_t kNumValues = 1;
  static constexpr int16_t kEncoding = 2;
};
struct DataPageHeaderV2Field {
  static constexpr int16_t kNumValues = 1;
  static constexpr int16_t kNumNulls = 2;
  static constexpr int16_t kNumRows = 3;
  static constexpr int16_t kEncoding = 4;
  static constexpr int16_t kDefinitionLevelsByteLength = 5;
  static constexpr int16_t kRepetitionLevelsByteLength = 6;
  static constexpr int16_t kIsCompressed = 7;
};

inline constexpr size_t kMaxColumns = 1024;
inline constexpr uint32_t kRowGroupRows = 128 << 10;
inline constexpr uint32_t kMaxRowGroupRows = 16 << 20;
inline constexpr uint32_t kPageRows = 20'000;
inline constexpr int kZstdLevel = 1;
inline constexpr size_t kMaxStringBytes = 16 << 20;     // of one value; more is refused
inline constexpr size_t kRowGroupTextBytes = 64 << 20;  // of one column; then the row group ends
inline constexpr size_t kPageTextBytes = 1 << 20;       // of a PLAIN page; then it ends
inline constexpr size_t kMaxDictionaryValues = 32 << 10;
inline constexpr size_t kMaxDictionaryTextBytes = 1 << 20;
inline constexpr size_t kMaxStatisticsBytes = 256;  // of a string; a longer one is in no statistics

}  // namespace collect::parquet

#include "formats/parquet/footer.h"

#include <string>

#include "formats/core/version.h"
#include "formats/parquet/layout.h"
#include "formats/parquet/thrift_writer.h"

namespace collect::parquet {

namespace {

// ConvertedType of parquet.thrift: what readers know that are older than LogicalType.
int32_t converted_type(Type type) {
  switch (type) {
    case Type::kUint32:
      return 13;  // UINT_32
    case Type::kUint64:
      return 14;  // UINT_64
    case Type::kInt32:
      return 17;  // INT_32
    case Type::kInt64:
      return 18;  // INT_64
    case Type::kDouble:
    case Type::kString:
      break;
  }
  return 0;  // UTF8
}

void write_logical_type(Type type, ThriftWriter& thrift) {
  if (type == Type::kDouble) return;
  thrift.i32(SchemaElementField::kConvertedType, converted_type(type));
  thrift.begin_struct(SchemaElementField::kLogicalType);
  if (type == Type::kString) {
    thrift.begin_struct(LogicalTypeField::kString);
  } else {
    const bool is_wide = physical_type(type) == PhysicalType::kInt64;
    thrift.begin_struct(LogicalTypeField::kInteger);
    thrift.i8(IntTypeField::kBitWidth, is_wide ? 64 : 32);
    thrift.boolean(IntTypeField::kIsSigned, type == Type::kInt32 || type == Type::kInt64);
  }
  thrift.end_struct();
  thrift.end_struct();
}

// The tree of the schema, depth first: a root and its leaves.
void write_schema(std::span<const ColumnBuffer> columns, ThriftWriter& thrift) {
  thrift.begin_list(FileMetaDataField::kSchema, ThriftType::kStruct, columns.size() + 1);
  thrift.begin_struct();
  thrift.text(SchemaElementField::kName, "schema");
  thrift.i32(SchemaElementField::kNumChildren, static_cast<int32_t>(columns.size()));
  thrift.end_struct();
  for (const ColumnBuffer& buffer : columns) {
    const Column& column = buffer.column();
    const auto repetition = column.is_optional ? Repetition::kOptional : Repetition::kRequired;
    thrift.begin_struct();
    thrift.i32(SchemaElementField::kType, static_cast<int32_t>(physical_type(column.type)));
    thrift.i32(SchemaElementField::kRepetitionType, static_cast<int32_t>(repetition));
    thrift.text(SchemaElementField::kName, column.name);
    write_logical_type(column.type, thrift);
    thrift.end_struct();
  }
}

}  // namespace

std::vector<uint8_t> encode_file_metadata(const FileMetaData& file) {
  std::vector<uint8_t> encoded;
  ThriftWriter thrift(encoded);
  thrift.begin_struct();
  thrift.i32(FileMetaDataField::kVersion, kFormatVersion);
  write_schema(file.columns, thrift);
  thrift.i64(FileMetaDataField::kNumRows, static_cast<int64_t>(file.row_count));
  thrift.begin_list(FileMetaDataField::kRowGroups, ThriftType::kStruct, file.row_group_count);
  thrift.elements(file.row_groups);
  if (!file.key_values.empty()) {
    thrift.begin_list(FileMetaDataField::kKeyValueMetadata, ThriftType::kStruct,
                      file.key_values.size());
    for (const auto& [key, value] : file.key_values) {
      thrift.begin_struct();
      thrift.text(KeyValueField::kKey, key);
      thrift.text(KeyValueField::kValue, value);
      thrift.end_struct();
    }
  }
  thrift.text(FileMetaDataField::kCreatedBy, std::string("collectord version ") + kVersion);
  thrift.begin_list(FileMetaDataField::kColumnOrders, ThriftType::kStruct, file.columns.size());
  for (size_t i = 0; i < file.columns.size(); ++i) {
    thrift.begin_struct();
    thrift.begin_struct(ColumnOrderField::kTypeOrder);
    thrift.end_struct();
    thrift.end_struct();
  }
  thrift.end_struct();
  return encoded;
}

}  // namespace collect::parquet

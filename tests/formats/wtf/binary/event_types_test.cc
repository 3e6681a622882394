#include "formats/wtf/binary/event_types.h"

#include <gtest/gtest.h>

#include "formats/wtf/binary/type_table.h"

namespace collect::wtf {
namespace {

TEST(Signature, EveryTypeAndAlias) {
  const auto arguments = parse_signature(
      "bool b, int8 c,uint8 d, int16 e, uint16 f, int32 g, uint32 h, float32 i, ascii j, utf8 k, "
      "char l, wchar m, any n, flowId o, time32 p, uint8[] q, sequence<float> r, unsigned short s, "
      "unsigned long[] t, DOMString u, byte v, octet w, short x, long y, float z");
  ASSERT_TRUE(arguments.ok()) << arguments.error().message;
  EXPECT_EQ(print_signature(*arguments),
            "bool b, int8 c, uint8 d, int16 e, uint16 f, int32 g, uint32 h, float32 i, ascii j, "
            "utf8 k, char l, wchar m, any n, flowId o, time32 p, uint8[] q, float32[] r, uint16 s, "
            "uint32[] t, utf8 u, int8 v, uint8 w, int16 x, int32 y, float32 z");
  EXPECT_TRUE(parse_signature("")->empty());
  const auto spaced = parse_signature(" \tuint32 ab \t,\n int8[]  c  ,bool d\r\n");
  ASSERT_TRUE(spaced.ok()) << spaced.error().message;
  EXPECT_EQ(print_signature(*spaced), "uint32 ab, int8[] c, bool d");
}

// Verdicts of the published viewer: the variants define_* of the reference pack.
TEST(Signature, RefusesWhatTheViewerRefuses) {
  for (const char* text :
       {"uint64 x", "float64 x", "double x", "uint32", "uint32 1a", "uint32 a,",
        "uint32 a,, uint32 b", "ascii[] a", "any[] a", "bool[] a", " ", "uint32 -"}) {
    const auto parsed = parse_signature(text);
    ASSERT_FALSE(parsed.ok()) << text;
    EXPECT_EQ(parsed.code(), Code::kDamaged) << text;
  }
  bool odd = false;
  EXPECT_EQ(parse_signature("uint32 a-b", &odd)->at(0).name, "a");
  EXPECT_TRUE(odd);
  EXPECT_TRUE(parse_signature("uint32 a, uint32 a", &odd).ok());
  EXPECT_TRUE(odd);
  EXPECT_TRUE(parse_signature("uint32 class, uint32 b", &odd).ok());
  EXPECT_FALSE(odd);
}

TEST(Signature, HasLimits) {
  std::string text = "bool a0";
  for (size_t i = 1; i < kMaxArguments; ++i) text += ",bool a" + std::to_string(i);
  EXPECT_EQ(parse_signature(text)->size(), kMaxArguments);
  EXPECT_EQ(parse_signature(text + ",bool more").code(), Code::kLimit);
  EXPECT_EQ(parse_signature(std::string(kMaxSignatureBytes + 1, ' ')).code(), Code::kLimit);
}

TEST(Builtins, AreTheTableOfTheFormat) {
  EXPECT_EQ(builtins().size(), 19u);
  for (const Builtin& known : builtins()) {
    ASSERT_TRUE(parse_signature(known.signature).ok()) << known.name;
    EXPECT_EQ(&builtin(known.role), &known);
  }
  EXPECT_EQ(builtin(Role::kDefine).flags, 40u);
  EXPECT_EQ(builtin(Role::kScopeEnterTracing).flags, 44u);
  EXPECT_EQ(builtin(Role::kScopeAppendData).flags, 56u);
  EXPECT_EQ(builtin(Role::kFlowAppendData).flags, 104u);
  EXPECT_EQ(builtin(Role::kFrameStart).flags, 8u);
}

TEST(Names, AreMadeSafe) {
  EXPECT_TRUE(is_argument_name("_a1"));
  EXPECT_FALSE(is_argument_name("1a"));
  EXPECT_FALSE(is_argument_name("a-b"));
  EXPECT_EQ(safe_argument_name("1 a-b"), "_1_a_b");
  EXPECT_EQ(safe_argument_name(""), "argument");
  EXPECT_TRUE(is_scope_name("blk.env#build:fast[\"x\"]-'$'"));
  EXPECT_FALSE(is_scope_name("a b"));
  EXPECT_FALSE(is_scope_name("a(b)"));
  EXPECT_EQ(safe_scope_name("a(b) 世"), "a_b___");
  EXPECT_TRUE(is_scope_name(safe_scope_name("")));
  EXPECT_TRUE(is_event_name("std::vector<int>::push_back(int const&) [clone \"x\"]"));
  EXPECT_FALSE(is_event_name("a\nb"));
  EXPECT_EQ(safe_event_name("a\n\r\u2028b"), "a   b");
  EXPECT_EQ(safe_event_name(""), "unnamed");
  EXPECT_EQ(safe_text(std::string_view("a\0b\xff", 4)),
            "a\xEF\xBF\xBD"
            "b\xEF\xBF\xBD");
  EXPECT_EQ(safe_text("世界"), "世界");
  EXPECT_EQ(thread_zone_name("app", 12, "render", 34), "app (12) / render (34)");
}

class Types : public ::testing::Test {
 protected:
  void define(uint32_t wire_id, const char* name, const char* signature, uint32_t flags = 0) {
    types.define({wire_id, kClassInstance, flags, name, signature}, 0, findings);
  }
  TypeTable types;
  Findings findings;
};

TEST_F(Types, EachWireIdKeepsItsOwnSignature) {
  define(2, "a", "uint32 x");
  define(3, "a", "ascii y, uint32 z");
  EXPECT_EQ(types.find(2)->arguments.size(), 1u);
  EXPECT_EQ(types.find(3)->arguments.size(), 2u);
  EXPECT_TRUE(findings.has(Rule::kRedefinition));
  EXPECT_EQ(findings.errors(), 0u);
  EXPECT_EQ(types.find_name("a"), types.find(2));
}

TEST_F(Types, SameAgainIsHarmless) {
  define(1, "wtf.event#define", "");
  define(2, "a", "uint32 x");
  const EventType* const first = types.find(2);
  define(2, "a", "uint32 x");
  EXPECT_EQ(types.find(2), first);
  EXPECT_TRUE(findings.list().empty());
  define(2, "b", "");
  EXPECT_TRUE(findings.has(Rule::kRedefinition));
  EXPECT_EQ(first->name, "a") << "types stay alive for those who hold them";
}

TEST_F(Types, WireId1StaysWhatItIs) {
  define(1, "mine", "");
  EXPECT_TRUE(findings.has(Rule::kDefineReserved));
  EXPECT_EQ(types.find(1)->role, Role::kDefine);
  const Builtin& known = builtin(Role::kDefine);
  EXPECT_EQ(types.find(1)->name, known.name);
  EXPECT_EQ(types.find(1)->signature, known.signature);
  EXPECT_EQ(types.find(1)->flags, known.flags);
  EXPECT_EQ(types.find(1)->event_class, known.event_class);
  EXPECT_EQ(print_signature(types.find(1)->arguments), known.signature);
}

TEST_F(Types, UnreadableDefinitionsAreUndefined) {
  define(2, "a", "uint32 x");
  define(2, "a", "uint64 x");
  EXPECT_EQ(types.find(2), nullptr);
  EXPECT_TRUE(findings.has(Rule::kDefinition));
  EXPECT_EQ(types.find(70000), nullptr);
}

TEST_F(Types, RolesNeedFlagAndArguments) {
  define(2, "wtf.zone#set", "uint16 zoneId");
  EXPECT_EQ(types.find(2)->role, Role::kNone);
  EXPECT_TRUE(findings.has(Rule::kZoneBuiltin));
  define(3, "wtf.zone#set", "uint16 zoneId", 40);
  EXPECT_EQ(types.find(3)->role, Role::kZoneSet);
  define(4, "wtf.trace#mark", "uint32 other", 40);
  EXPECT_EQ(types.find(4)->role, Role::kNone);
  EXPECT_TRUE(findings.has(Rule::kBuiltinSignature));
}

// A file of short definitions that all name one long argument list must not fill the memory.
TEST_F(Types, DefinitionsHaveABudget) {
  std::string signature = "uint32 a0";
  for (size_t i = 1; i < kMaxArguments; ++i) signature += ",bool a" + std::to_string(i);
  uint32_t wire_id = 2;
  while (!findings.has(Rule::kLimit) && wire_id < kMaxWireId) {
    define(wire_id, "name", signature.c_str());
    ++wire_id;
  }
  ASSERT_TRUE(findings.has(Rule::kLimit));
  EXPECT_LT(wire_id * signature.size(), kMaxDefinitionBytes);
  EXPECT_EQ(types.find(wire_id - 1), nullptr);
}

}  // namespace
}  // namespace collect::wtf

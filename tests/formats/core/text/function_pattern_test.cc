#include "formats/core/text/function_pattern.h"

#include <gtest/gtest.h>

#include <string>

namespace collect {
namespace {

TEST(FunctionPattern, NamesMeanWhatPeopleWrite) {
  const char* linkage = "_ZN2ns5parseIiEEvRKSs";
  const char* name = "void ns::parse<int>(std::string const&)";
  for (const char* pattern :
       {"_ZN2ns5parseIiEEvRKSs", "void ns::parse<int>", "*parse*", "*::parse<*>(std::string*)",
        "parse", "parse<int>", "parse<int>(std::string const&)", "ns::parse", "ns::parse<int>",
        "ns::parse<int>(std::string const&)", "void ns::parse", "par*", "ns::*", "p?rse", "*"}) {
    EXPECT_TRUE(means_function(pattern, linkage, name)) << pattern;
  }
  for (const char* pattern : {"", "pars", "arse", "s::parse", "parse<long>", "parse()", "void",
                              "string", "int", "std::*", "ns", "parse(std::string const&)"}) {
    EXPECT_FALSE(means_function(pattern, linkage, name)) << pattern;
  }
  EXPECT_TRUE(means_function("ns::f", "_ZN2ns1fEi", "ns::f(int)"));
  EXPECT_TRUE(means_function("ns::f", "x", "ns::f(void (*)(int))"));
  EXPECT_TRUE(means_function("f", "", "ns::f(int) const"));
  EXPECT_TRUE(means_function("leaf", "", "leaf(int)"));
  EXPECT_TRUE(means_function("main", "main", "main"));
  EXPECT_FALSE(means_function("main", "main2", "main2"));
  EXPECT_TRUE(means_function("f", "", "(anonymous namespace)::f(int)"));
  EXPECT_TRUE(means_function("app+0x10", "", "app+0x10"));
}

TEST(FunctionPattern, OperatorsAndLambdasKeepTheirBrackets) {
  EXPECT_TRUE(means_function("operator()", "", "main::{lambda(int)#1}::operator()(int) const"));
  EXPECT_TRUE(means_function("{lambda(int)#1}::operator()", "",
                             "main::{lambda(int)#1}::operator()(int) const"));
  EXPECT_TRUE(means_function("operator<", "", "ns::operator<(ns::A const&, ns::A const&)"));
  EXPECT_TRUE(means_function("operator<<", "", "std::ostream& ns::operator<<(std::ostream&, int)"));
  EXPECT_TRUE(means_function("operator->", "", "ns::P<ns::T>::operator->() const"));
  EXPECT_TRUE(
      means_function("operator unsigned long", "", "ns::A::operator unsigned long() const"));
  EXPECT_FALSE(means_function("long", "", "ns::A::operator unsigned long() const"));
  EXPECT_TRUE(means_function("operators", "", "ns::operators(int)"));
  for (const char* plain : {"operator_x", "operators", "operator2", "an_operator"}) {
    EXPECT_TRUE(means_function(plain, "", "ns::" + std::string(plain) + "<int>(int)")) << plain;
  }
  EXPECT_TRUE(means_function("P<*>::get", "", "ns::P<ns::T<int> >::get()"));
  EXPECT_FALSE(means_function("T<int> >::get", "", "ns::P<ns::T<int> >::get()"))
      << "a part begins outside of brackets";
}

TEST(FunctionPattern, BaseNames) {
  EXPECT_EQ(base_name("void app::json::parse<int>(char*)"), "parse");
  EXPECT_EQ(base_name("leaf(int)"), "leaf");
  EXPECT_EQ(base_name("main"), "main");
  EXPECT_EQ(base_name("f(int)"), "f");
  EXPECT_EQ(base_name("operator"), "operator");
  EXPECT_EQ(base_name("ns::A::operator<<(int)"), "operator<<");
  EXPECT_EQ(base_name(""), "");
  EXPECT_EQ(base_name("ns::A<int>::f(int)"), "f");
  EXPECT_EQ(base_name("ns::A<int>::f<char>(int)"), "f");
  EXPECT_EQ(base_name("(anonymous namespace)::f"), "f");
  EXPECT_EQ(base_name("ns::<unnamed>"), "<unnamed>");
  EXPECT_EQ(base_name("f<A<int> >(A<int>)"), "f");
  EXPECT_EQ(base_name("f(char)::{lambda(int)#1}"), "{lambda(int)#1}");
}

TEST(FunctionPattern, KeepsOtherNamesInOnePart) {
  for (const char* name : {"f(g", "lib:open", "ns::", "a:", "(x)", "::"}) {
    EXPECT_EQ(base_name(name), name);
  }
  EXPECT_EQ(base_name("a::b"), "b");
  EXPECT_EQ(base_name("a>b::f(int)"), "f") << "a bracket that nothing has opened closes none";
}

TEST(FunctionPattern, MethodOfATemplateHasItsOwnArguments) {
  const char* name = "ns::A<int>::f<char>(int)";
  for (const char* pattern : {"f", "f<char>", "f<char>(int)", "A<int>::f", "ns::A<int>::f"}) {
    EXPECT_TRUE(means_function(pattern, "", name)) << pattern;
  }
  for (const char* pattern : {"A", "ns::A", "A<int>"}) {
    EXPECT_FALSE(means_function(pattern, "", name)) << pattern;
  }
}

TEST(FunctionPattern, NoPatternMeansNothing) {
  EXPECT_FALSE(means_function("", "", "f"));
  EXPECT_FALSE(means_function("", "f", "f(int)"));
}

TEST(FunctionPattern, MatchesTheInnermostPartsOfADeepName) {
  std::string name;
  for (int i = 0; i < 100; ++i) name += "n" + std::to_string(i) + "::";
  EXPECT_TRUE(means_function("f", "", name + "f(int)"));
  EXPECT_TRUE(means_function("n99::f", "", name + "f(int)"));
  EXPECT_TRUE(means_function(name + "f", "", name + "f(int)"));
  EXPECT_FALSE(means_function("n2::f", "", name + "f(int)"));
  EXPECT_TRUE(means_function("n85::*::f", "", name + "f(int)")) << "16 parts with f";
  EXPECT_FALSE(means_function("n84::*::f", "", name + "f(int)"));
}

TEST(FunctionPattern, SixteenPartsAreMatchedWhereverTheNameEnds) {
  std::string outer;
  for (size_t parts = 1; parts <= 50; ++parts) {
    const std::string name = outer + "f(int)";
    EXPECT_TRUE(means_function("f", "", name)) << name;
    EXPECT_EQ(base_name(name), "f");
    for (size_t part = 0; part + 1 < parts; ++part) {
      const std::string pattern = "n" + std::to_string(part) + "::*f";
      const bool is_matched = part == 0 || part + 16 >= parts;  // a name's beginning always is
      EXPECT_EQ(means_function(pattern, "", name), is_matched) << pattern << " in " << name;
    }
    outer += "n" + std::to_string(parts - 1) + "::";
  }
}

// A pattern that would make a backtracking matcher run for ages.
TEST(FunctionPattern, ManyStarsAreFast) {
  std::string pattern;
  for (int i = 0; i < 100; ++i) pattern += "a*";
  EXPECT_FALSE(means_function(pattern + "b", std::string(1000, 'a'), std::string(1000, 'a')));
}

TEST(FunctionPattern, WordsAreIdsOrPatterns) {
  const auto words = parse_function_words({"leaf", "0x100000040", "0X1f", "a*"});
  ASSERT_TRUE(words.ok());
  ASSERT_EQ(words->size(), 4u);
  EXPECT_FALSE((*words)[0].id);
  EXPECT_EQ((*words)[1].id, 0x100000040u);
  EXPECT_EQ((*words)[2].id, 0x1fu);
  EXPECT_EQ((*words)[3].text, "a*");
  for (const char* word : {"", "0x", "0xg", "0x12345678901234567"}) {
    EXPECT_EQ(parse_function_words({word}).code(), Code::kInvalidArgument) << word;
  }
  EXPECT_EQ(parse_function_words({"0x12g"}).code(), Code::kInvalidArgument);
  const auto largest = parse_function_words({"0xffffffffffffffff"});
  ASSERT_TRUE(largest.ok());
  EXPECT_EQ((*largest)[0].id, UINT64_MAX);
  EXPECT_EQ(parse_function_words({std::string(kMaxFunctionWordBytes, 'f')}).code(), Code::kLimit);
  EXPECT_TRUE(parse_function_words({std::string(kMaxFunctionWordBytes - 1, 'f')}).ok());
  EXPECT_TRUE(parse_function_words(std::vector<std::string>(kMaxFunctionPatterns, "f")).ok());
  EXPECT_EQ(parse_function_words(std::vector<std::string>(kMaxFunctionPatterns + 1, "f")).code(),
            Code::kLimit);
  std::vector<std::string> with_id(kMaxFunctionPatterns, "f");
  with_id.emplace_back("0x1");
  EXPECT_TRUE(parse_function_words(with_id).ok()) << "an id is no pattern";
}

}  // namespace
}  // namespace collect

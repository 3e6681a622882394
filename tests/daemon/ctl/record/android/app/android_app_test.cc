// What is asked of a phone and of an app on it, and what is said of each answer.
#include "daemon/ctl/record/android/app/android_app.h"

#include <gmock/gmock.h>
#include <signal.h>

#include <cstdlib>
#include <filesystem>

#include "daemon/ctl/record/android/phone_agent.h"
#include "daemon/ctl/record/android/phone_variables.h"
#include "tests/daemon/ctl/record/android/phone_fixture.h"

namespace collect::ctl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class AndroidAppTest : public PhoneTest {
 protected:
  AndroidAppTest() { phone_.install(kApp, kProgram); }

  Result<AndroidApp> look(const std::string& package = kApp) {
    return look_at_app(*device_, {"x86_64", 34, "Sim Phone"}, package);
  }
};

TEST_F(AndroidAppTest, PhoneSaysWhatItIs) {
  const auto phone = look_at_phone(*device_);
  ASSERT_TRUE(phone.ok());
  EXPECT_EQ(phone->abi, "x86_64");
  EXPECT_EQ(phone->sdk, 34u);
  EXPECT_EQ(phone->model, "Sim Phone");
  phone_.set_property("ro.product.model", "");
  EXPECT_EQ(look_at_phone(*device_)->model, "");
  phone_.set_property("ro.product.model", "Sim \r");
  EXPECT_EQ(look_at_phone(*device_)->model, "Sim");
  for (const auto& [abi, sdk] : {std::pair("", "34"), std::pair("x86_64", ""),
                                 std::pair("x86_64", "new"), std::pair("x86_64", "0")}) {
    phone_.set_property("ro.product.cpu.abi", abi);
    phone_.set_property("ro.build.version.sdk", sdk);
    EXPECT_EQ(look_at_phone(*device_).code(), Code::kUnsupported);
    EXPECT_EQ(message_of(look_at_phone(*device_)), "R58M: it does not say what Android it runs");
  }
  replace("getprop", "echo x86_64");
  EXPECT_EQ(look_at_phone(*device_).code(), Code::kUnsupported);
  replace("getprop", "echo no such tool >&2; exit 1");
  EXPECT_THAT(message_of(look_at_phone(*device_)), ::testing::StartsWith("R58M: no such tool"));
}

TEST_F(AndroidAppTest, AndroidTenIsTheOldest) {
  EXPECT_TRUE(check_sdk(*device_, {"x86_64", 29, ""}).ok());
  const Status old = check_sdk(*device_, {"x86_64", 28, ""});
  EXPECT_EQ(old.code(), Code::kUnsupported);
  EXPECT_EQ(old.error().message,
            "R58M runs Android of API level 28; the agent needs 29 (Android 10): take a newer "
            "phone or emulator");
}

TEST_F(AndroidAppTest, NamesOfPackagesCanStandInACommand) {
  for (const std::string& good : {std::string("com.example.app"), std::string("a"),
                                  std::string("A_9.b"), std::string(223, 'a')}) {
    EXPECT_TRUE(check_package_name(good).ok()) << good;
  }
  for (const std::string& bad :
       {std::string(), std::string(224, 'a'), std::string(".a"), std::string("a b"),
        std::string("a;b"), std::string("a-b"), std::string("a/b"), std::string("$a")}) {
    EXPECT_EQ(check_package_name(bad).code(), Code::kInvalidArgument) << bad;
    EXPECT_EQ(look(bad).code(), Code::kInvalidArgument) << bad;
  }
  EXPECT_EQ(check_package_name("a b").error().message,
            "\"a b\" is no package of Android: give a name such as com.example.app, as `adb shell "
            "pm list packages` has them");
}

TEST_F(AndroidAppTest, AppSaysWhereItLives) {
  const auto app = look();
  ASSERT_TRUE(app.ok()) << app.error().message;
  EXPECT_EQ(app->package, kApp);
  EXPECT_EQ(app->data_directory, phone_.app(kApp, "data"));
  EXPECT_EQ(app->code_directory, phone_.app(kApp, "code"));
  EXPECT_EQ(app->abi, "x86_64");
  EXPECT_FALSE(app->has_wrap);
  EXPECT_FALSE(app->wrap_reads_variables);
  // Its own word goes before the phone's.
  phone_.write(phone_.app(kApp, "abi"), "armeabi-v7a\n");
  EXPECT_EQ(look()->abi, "armeabi-v7a");
  for (const char* none : {"null\n", "\n"}) {
    phone_.write(phone_.app(kApp, "abi"), none);
    EXPECT_EQ(look()->abi, "x86_64") << "the phone's";
  }
  replace("dumpsys", "echo nothing of that");
  EXPECT_EQ(look()->abi, "x86_64");
}

TEST_F(AndroidAppTest, FindsTheScriptBesideTheApksLibraries) {
  for (const auto& [abi, folder] :
       {std::pair("x86_64", "x86_64"), std::pair("arm64-v8a", "arm64"),
        std::pair("armeabi-v7a", "arm"), std::pair("armeabi", "arm"), std::pair("x86", "x86")}) {
    phone_.write(phone_.app(kApp, "abi"), std::string(abi) + "\n");
    EXPECT_FALSE(look()->has_wrap) << abi;
    const std::string code = phone_.app(kApp, std::string("code/lib/") + folder);
    std::filesystem::create_directories(code);
    phone_.write(code + "/wrap.sh", "exec \"$@\"\n");
    EXPECT_TRUE(look()->has_wrap) << abi;
    EXPECT_FALSE(look()->wrap_reads_variables);
    phone_.write(code + "/wrap.sh", ". ./collect/variables\nexec \"$@\"\n");
    EXPECT_TRUE(look()->wrap_reads_variables);
    std::filesystem::remove_all(phone_.app(kApp, "code/lib"));
  }
  // A path that can't stand in quotes is not looked at.
  replace("pm", "echo \"package:/data/app/it's/base.apk\"");
  EXPECT_FALSE(look()->has_wrap);
  EXPECT_EQ(look()->code_directory, "/data/app/it's");
  replace("pm", "echo \"package:/data/app/it'; touch $PHONE/done; echo '/base.apk\"");
  EXPECT_FALSE(look()->has_wrap);
  EXPECT_FALSE(std::filesystem::exists(phone_ / "done")) << "a path is no command";
}

TEST_F(AndroidAppTest, NamesAppsThatAreNotInstalled) {
  const auto none = look("com.example.other");
  EXPECT_EQ(none.code(), Code::kNotFound);
  EXPECT_EQ(message_of(none),
            "com.example.other on R58M is not installed: install it with `adb install`, or see "
            "`adb shell pm list packages`");
  for (const char* script : {"exit 0", "echo package:/x/base.apk; exit 1", "echo 'no package:'"}) {
    replace("pm", script);
    EXPECT_EQ(look().code(), Code::kNotFound) << script;
  }
}

TEST_F(AndroidAppTest, ExplainsWhyAnAppCannotBeEntered) {
  std::filesystem::remove(phone_.app(kApp, "debuggable"));
  EXPECT_EQ(look().code(), Code::kPermission);
  EXPECT_EQ(message_of(look()),
            "com.example.app on R58M is not debuggable: install its debug build, or let the app "
            "start the agent by itself (deploy/android/README.md)");
  replace("run-as", "echo 'run-as: nope' >&2; echo out; exit 1");
  EXPECT_EQ(look().code(), Code::kPermission);
  EXPECT_EQ(message_of(look()), "com.example.app on R58M can't be entered by run-as: run-as: nope");
  replace("run-as", "echo out; exit 1");
  EXPECT_EQ(message_of(look()), "com.example.app on R58M can't be entered by run-as: out");
  replace("run-as", "exit 1");
  EXPECT_EQ(message_of(look()),
            "com.example.app on R58M can't be entered by run-as: it does not say why");
  replace("run-as", "exit 0");
  EXPECT_EQ(look().code(), Code::kUnsupported) << "it says nothing";
  for (const char* folder : {"", "data/user", "/data/a b", "/data/a\\'b", "/data/$a", "/data/a;b",
                             "/data/a*", "/data/(a)", "/data/a|b", "/data/a\\\\\\\\b"}) {
    replace("run-as", std::string("printf '%s\\n' \"") + folder + "\"");
    if (std::string(folder).find('$') != std::string::npos) replace("run-as", "echo '/data/$a'");
    EXPECT_EQ(look().code(), Code::kUnsupported) << folder;
    EXPECT_EQ(message_of(look()),
              "com.example.app on R58M: run-as does not say where the app's data is");
  }
}

TEST_F(AndroidAppTest, ActivitiesAreThoseOfTheApp) {
  const auto found = [this](const std::string& activity) {
    const auto component = find_activity(*device_, kApp, activity);
    return component.ok() ? *component : component.error().message;
  };
  EXPECT_EQ(found(""), "com.example.app/.MainActivity") << "what a launcher starts";
  EXPECT_EQ(found(".Other"), "com.example.app/.Other");
  EXPECT_EQ(found("com.example.app/.Other$Inner"), "com.example.app/.Other$Inner");
  for (const char* bad : {"org.other/.Main", ".Ma;in", ".Ma in", "com.example.app2/.Main"}) {
    EXPECT_EQ(found(bad), "\"" + std::string(bad) +
                              "\" is no activity of com.example.app: give a name such as "
                              ".MainActivity");
    EXPECT_EQ(find_activity(*device_, kApp, bad).code(), Code::kInvalidArgument);
  }
  replace("cmd", "echo priority=0; echo 'No activity found'");
  EXPECT_EQ(found(""),
            "com.example.app on R58M has no activity that a launcher would start: name one, such "
            "as .MainActivity");
  EXPECT_EQ(find_activity(*device_, kApp, "").code(), Code::kNotFound);
}

TEST_F(AndroidAppTest, RestartsTheApp) {
  const std::string main = std::string(kApp) + "/.MainActivity";
  ASSERT_TRUE(restart_app(*device_, kApp, main).ok());
  const std::string first = phone_.read(phone_.app(kApp, "pid"));
  EXPECT_GT(std::atoi(first.c_str()), 0);
  ASSERT_TRUE(restart_app(*device_, kApp, main).ok());
  const std::string second = phone_.read(phone_.app(kApp, "pid"));
  EXPECT_NE(first, second);
  const Status other = restart_app(*device_, kApp, std::string(kApp) + "/.Other$Inner");
  EXPECT_EQ(other.code(), Code::kNotFound);
  EXPECT_EQ(other.error().message,
            "R58M: com.example.app/.Other$Inner did not start: Error: Activity class "
            "{com.example.app/.Other$Inner} does not exist.");
  replace("am", "[ $1 = force-stop ] && exit 0; echo 'Error: too busy' >&2");
  EXPECT_EQ(restart_app(*device_, kApp, main).error().message,
            "R58M: com.example.app/.MainActivity did not start: Error: too busy");
  replace("am", "[ $1 = force-stop ] && exit 0; exit 7");
  EXPECT_EQ(restart_app(*device_, kApp, main).code(), Code::kIo);
  EXPECT_EQ(restart_app(*device_, kApp, main).error().message,
            "R58M: com.example.app/.MainActivity did not start: am ended with 7");
  phone_.end_apps();
}

TEST_F(AndroidAppTest, AgentIsForOneProcessor) {
  const std::string file = phone_ / "libcollect_agent.so";
  const auto with = [&](int machine, const std::string& abi, size_t bytes = 20) {
    std::string head = "\177ELF" + std::string(14, '\0');
    head += static_cast<char>(machine & 0xFF);
    head += static_cast<char>(machine >> 8);
    phone_.write(file, head.substr(0, bytes));
    return find_phone_agent(abi, file);
  };
  EXPECT_EQ(*with(183, "arm64-v8a"), file);
  EXPECT_EQ(*with(62, "x86_64"), file);
  EXPECT_EQ(*with(40, "armeabi-v7a"), file);
  EXPECT_EQ(*with(3, "x86"), file);
  const auto wrong = with(183, "x86_64");
  EXPECT_EQ(wrong.code(), Code::kUnsupported);
  EXPECT_EQ(message_of(wrong), file +
                                   " is for arm64-v8a, and the app runs as x86_64: name the agent "
                                   "for that by --agent FILE");
  EXPECT_THAT(message_of(with(0x1234, "x86_64")), HasSubstr(" is for machine 4660, and the app"));
  const std::string none = file + " is no library; --agent names libcollect_agent.so of x86_64";
  EXPECT_EQ(message_of(with(62, "x86_64", 19)), none);
  phone_.write(file, std::string(20, 'x'));
  EXPECT_EQ(message_of(find_phone_agent("x86_64", file)), none);
  std::filesystem::remove(file);
  EXPECT_EQ(message_of(find_phone_agent("x86_64", file)), none);
  EXPECT_EQ(find_phone_agent("x86_64", file).code(), Code::kNotFound);
  EXPECT_THAT(installed_phone_agent("mips"),
              ::testing::EndsWith("/../lib/collectord/android/mips/libcollect_agent.so"));
  EXPECT_EQ(message_of(find_phone_agent("mips", "")),
            "there is no agent for mips: install collectord-agent-android, or build it "
            "(deploy/agents.sh android, with Android's NDK) and name it by --agent FILE, or put it "
            "at " +
                installed_phone_agent("mips"));
  EXPECT_EQ(find_phone_agent("mips", "").code(), Code::kNotFound);
}

TEST_F(AndroidAppTest, SendsTheAgentItsVariables) {
  AgentSettings settings;
  settings.tag = "night";
  EXPECT_THAT(*phone_variables(settings, "/d/cache"),
              ElementsAre("COLLECT_LISTEN=abstract:", "COLLECT_LOG=1", "COLLECT_SPOOL=/d/cache",
                          "COLLECT_FULL=drop", "COLLECT_SWITCHES=on", "COLLECT_TAG=night"));
  settings.full = "wait";
  settings.detail = "armed";
  EXPECT_THAT(*phone_variables(settings, "/d/cache"),
              ElementsAre("COLLECT_LISTEN=abstract:", "COLLECT_LOG=1", "COLLECT_SPOOL=/d/cache",
                          "COLLECT_FULL=wait", "COLLECT_SWITCHES=on", "COLLECT_TAG=night",
                          "COLLECT_DETAIL=armed"));
  settings.only = {std::string("a;b")};
  EXPECT_EQ(phone_variables(settings, "/d/cache").code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace collect::ctl

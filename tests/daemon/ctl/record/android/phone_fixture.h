// A phone behind an adb server of the tests, as one command of collectctl sees it.
#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <functional>
#include <optional>
#include <string>

#include "daemon/attach/adb/adb_address.h"
#include "daemon/ctl/record/android/adb/adb_device.h"
#include "tests/fakes/phones/fake_adb_server.h"
#include "tests/fakes/phones/fake_phone.h"

namespace collect::ctl {

class PhoneTest : public testing::Test {
 protected:
  static constexpr char kApp[] = "com.example.app";
  // What an app does that continues until it is ended.
  static constexpr char kProgram[] = "sh -c 'exec sleep 600'";

  PhoneTest() {
    server_.start();
    plug();
    client_.emplace(*attach::adb_address("tcp:" + server_.address(),
                                         [](const char*) -> const char* { return nullptr; }));
    device_.emplace(*client_, "R58M", "Sim");
  }

  void plug() {
    fakes::FakePhone phone;
    phone.folder = phone_.path();
    server_.plug("R58M", phone);
  }
  // A command of the phone that does something else.
  void replace(const std::string& command, const std::string& script) {
    const std::string path = phone_ / "bin/" + command;
    phone_.write(path, "#!/bin/sh\n" + script + "\n");
    ::chmod(path.c_str(), 0755);
  }
  std::string data(const std::string& name) const { return phone_.app(kApp, "data/" + name); }

  fakes::FakePhoneFolder phone_;
  fakes::FakeAdbServer server_;
  std::optional<AdbClient> client_;
  std::optional<AdbDevice> device_;
};

template <class T>
std::string message_of(const Result<T>& result) {
  return result.ok() ? "" : result.error().message;
}

}  // namespace collect::ctl

// ListDevices and WatchDevices.
#include "tests/daemon/control/server_fixture.h"

namespace collect::control {
namespace {

using Stub = api::Collector::Stub;

api::Device device(const std::string& serial, api::DeviceState state) {
  api::Device made;
  made.set_name("devices/" + serial);
  made.set_serial(serial);
  made.set_via("adb");
  made.set_model("Sim_" + serial);
  made.set_state(state);
  return made;
}

class DeviceServiceTest : public ServerFixture {};

TEST_F(DeviceServiceTest, ListHasDevicesAndServers) {
  collector_.change_device(api::AgentEvent::ADDED, device("A", api::NO_AGENT));
  collector_.change_device(api::AgentEvent::ADDED, device("B", api::BLOCKED));
  api::DeviceServer server;
  server.set_via("adb");
  server.set_status("no adb server");
  collector_.set_device_servers({server});
  api::ListDevicesResponse response;
  ASSERT_TRUE(call(&Stub::ListDevices, {}, &response).ok());
  EXPECT_EQ(response.devices_size(), 2);
  ASSERT_EQ(response.servers_size(), 1);
  EXPECT_EQ(response.servers(0).status(), "no adb server");
  for (const char* filter : {"B", "Sim_B", "devices/B"}) {
    api::ListDevicesRequest request;
    request.set_filter(filter);
    api::ListDevicesResponse filtered;
    ASSERT_TRUE(call(&Stub::ListDevices, request, &filtered).ok());
    ASSERT_EQ(filtered.devices_size(), 1) << filter;
    EXPECT_EQ(filtered.devices(0).state(), api::BLOCKED);
    EXPECT_EQ(filtered.servers_size(), 1) << "why there may be none";
  }
  api::ListDevicesRequest unprintable;
  unprintable.set_filter("\x01");
  EXPECT_EQ(call(&Stub::ListDevices, unprintable, &response).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(DeviceServiceTest, WatchBeginsWithThePresentOnes) {
  collector_.change_device(api::AgentEvent::ADDED, device("A", api::NO_AGENT));
  collector_.change_device(api::AgentEvent::ADDED, device("B", api::NO_AGENT));
  const auto made = context();
  api::WatchDevicesRequest request;
  request.set_filter("A");
  const auto reader = stub_->WatchDevices(made.get(), request);
  api::DeviceEvent event;
  ASSERT_TRUE(reader->Read(&event));
  EXPECT_EQ(event.kind(), api::AgentEvent::PRESENT);
  EXPECT_EQ(event.device().serial(), "A");
  collector_.change_device(api::AgentEvent::CHANGED, device("B", api::SERVING));
  collector_.change_device(api::AgentEvent::CHANGED, device("A", api::SERVING));
  ASSERT_TRUE(reader->Read(&event));
  EXPECT_EQ(event.kind(), api::AgentEvent::CHANGED);
  EXPECT_EQ(event.device().state(), api::SERVING);
  collector_.change_device(api::AgentEvent::REMOVED, device("A", api::ABSENT));
  ASSERT_TRUE(reader->Read(&event));
  EXPECT_EQ(event.kind(), api::AgentEvent::REMOVED);
  made->TryCancel();
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::CANCELLED);
  collector_.wait_for_watches(0);
}

}  // namespace
}  // namespace collect::control

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
  collector_.change_device(api::CHANGE_KIND_ADDED, device("A", api::DEVICE_STATE_NO_AGENT));
  collector_.change_device(api::CHANGE_KIND_ADDED, device("B", api::DEVICE_STATE_BLOCKED));
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
    request.set_match(filter);
    api::ListDevicesResponse filtered;
    ASSERT_TRUE(call(&Stub::ListDevices, request, &filtered).ok());
    ASSERT_EQ(filtered.devices_size(), 1) << filter;
    EXPECT_EQ(filtered.devices(0).state(), api::DEVICE_STATE_BLOCKED);
    EXPECT_EQ(filtered.servers_size(), 1) << "why there may be none";
  }
  api::ListDevicesRequest blocked;
  blocked.add_states(api::DEVICE_STATE_BLOCKED);
  ASSERT_TRUE(call(&Stub::ListDevices, blocked, &response).ok());
  ASSERT_EQ(response.devices_size(), 1);
  EXPECT_EQ(response.devices(0).serial(), "B");
  api::GetDeviceRequest get;
  get.set_name("devices/A");
  api::Device got;
  ASSERT_TRUE(call(&Stub::GetDevice, get, &got).ok());
  EXPECT_EQ(got.serial(), "A");
  get.set_name("devices/C");
  EXPECT_EQ(call(&Stub::GetDevice, get, &got).error_code(), grpc::StatusCode::NOT_FOUND);
  api::ListDevicesRequest unprintable;
  unprintable.set_match("\x01");
  EXPECT_EQ(call(&Stub::ListDevices, unprintable, &response).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(DeviceServiceTest, WatchBeginsWithThePresentOnes) {
  collector_.change_device(api::CHANGE_KIND_ADDED, device("A", api::DEVICE_STATE_NO_AGENT));
  collector_.change_device(api::CHANGE_KIND_ADDED, device("B", api::DEVICE_STATE_NO_AGENT));
  const auto made = context();
  api::WatchDevicesRequest request;
  request.set_match("A");
  const auto reader = stub_->WatchDevices(made.get(), request);
  api::DeviceEvent event;
  ASSERT_TRUE(reader->Read(&event));
  EXPECT_EQ(event.kind(), api::CHANGE_KIND_PRESENT);
  EXPECT_EQ(event.device().serial(), "A");
  ASSERT_TRUE(reader->Read(&event));
  EXPECT_EQ(event.kind(), api::CHANGE_KIND_SYNCED);
  collector_.change_device(api::CHANGE_KIND_CHANGED, device("B", api::DEVICE_STATE_SERVING));
  collector_.change_device(api::CHANGE_KIND_CHANGED, device("A", api::DEVICE_STATE_SERVING));
  ASSERT_TRUE(reader->Read(&event));
  EXPECT_EQ(event.kind(), api::CHANGE_KIND_CHANGED);
  EXPECT_EQ(event.device().state(), api::DEVICE_STATE_SERVING);
  collector_.change_device(api::CHANGE_KIND_REMOVED, device("A", api::DEVICE_STATE_ABSENT));
  ASSERT_TRUE(reader->Read(&event));
  EXPECT_EQ(event.kind(), api::CHANGE_KIND_REMOVED);
  made->TryCancel();
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::CANCELLED);
  collector_.wait_for_watches(0);
}

}  // namespace
}  // namespace collect::control

// collectctl devices
#include "daemon/ctl/control/devices.h"

#include "daemon/ctl/command_line/shared_options.h"
#include "daemon/ctl/commands/commands.h"

namespace collect::ctl {

void add_devices(const CommandGroup& group) {
  const Command command =
      group.add("devices", "List the phones that the collector finds agents on");
  const auto options = std::make_shared<DeviceOptions>();
  command.collector();
  command.json();
  command.positional("FILTER", options->filter,
                     "Serial, model, or how it is reached: adb or usbmux");
  command.flag("--watch", options->watch, "Print changes as they happen");
  command.run(
      [options](const Invocation& invocation) { return devices(online(invocation), *options); });
}

}  // namespace collect::ctl

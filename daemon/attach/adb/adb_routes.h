// A phone by cable and in the network has two entries in the adb server's list, with two serials.
// Here they are one: known by the serial under which it was seen first, as long as any of its
// entries is there, and reached by cable while it can be. What such an entry is, only the phone
// says: the number that it has by cable is its property ro.serialno.
//
// No sockets here. On the thread of the source.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "daemon/attach/device_source.h"

namespace collect::attach {

class AdbRoutes {
 public:
  // The server's list, whole.
  void take(std::vector<SourceDevice> list);
  // Entries in the network whose phone is to be asked for its number; each is named once.
  std::vector<std::string> to_ask();
  void answered(const std::string& serial, const std::string& number);  // empty: it has none

  // One entry for each phone. One that has not answered yet is left out.
  const std::vector<SourceDevice>& phones() const { return phones_; }
  // The serial by which it is reached now.
  const std::string& route(const std::string& phone) const;

 private:
  struct Asked {
    bool is_asked = false;
    bool is_answered = false;
    std::string number;
  };

  void merge();
  std::string phone_of(const SourceDevice& device) const;
  bool is_held_back(const SourceDevice& device) const;

  std::vector<SourceDevice> list_;
  std::map<std::string, Asked> asked_;            // by serial, of the network
  std::map<std::string, std::string> phone_ids_;  // by number: how such a phone is known
  std::vector<SourceDevice> phones_;
  std::map<std::string, std::string> routes_;
};

}  // namespace collect::attach

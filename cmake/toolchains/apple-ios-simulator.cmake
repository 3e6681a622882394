# The agent for apps in the iOS simulator of Macs with Apple's processors, arm64.
include(${CMAKE_CURRENT_LIST_DIR}/apple.cmake)
collect_apple(iOS ios 15.0 simulator)

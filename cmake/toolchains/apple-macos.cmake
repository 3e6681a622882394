# The agent for programs on macOS, arm64.
include(${CMAKE_CURRENT_LIST_DIR}/apple.cmake)
collect_apple(Darwin macos 12.0)

# The agent for apps on iOS, arm64.
include(${CMAKE_CURRENT_LIST_DIR}/apple.cmake)
collect_apple(iOS ios 15.0)

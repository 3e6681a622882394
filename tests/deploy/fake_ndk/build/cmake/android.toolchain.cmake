# In place of the NDK's, for tests of what is made of its libraries. What this links can't run.
include(${CMAKE_CURRENT_LIST_DIR}/../../../../../cmake/toolchains/android_check.cmake)

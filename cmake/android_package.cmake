# The component and Debian package with what `deploy/agents.sh android` made: the libraries where
# `collectctl android` looks for them, ../lib/collectord/android/ABI, and the AAR in a Maven repository.
file(GLOB android_libraries ${COLLECT_ANDROID_AGENT}/lib/*/libcollect_agent.so)
file(GLOB_RECURSE android_aar ${COLLECT_ANDROID_AGENT}/maven/*-${PROJECT_VERSION}.aar)
if(NOT android_libraries OR NOT android_aar)
  message(FATAL_ERROR "COLLECT_ANDROID_AGENT is ${COLLECT_ANDROID_AGENT}, which has no agent of version "
                      "${PROJECT_VERSION}: build it with deploy/agents.sh android --ndk DIR")
endif()

set(android_component android)
install(DIRECTORY ${COLLECT_ANDROID_AGENT}/lib/ DESTINATION lib/collectord/android COMPONENT android
        FILE_PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
install(DIRECTORY ${COLLECT_ANDROID_AGENT}/maven
        DESTINATION ${CMAKE_INSTALL_DATADIR}/collectord/android COMPONENT android)
install(FILES deploy/android/README.md deploy/android/wrap.sh
        DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/doc/collectord-agent-android COMPONENT android)
install(DIRECTORY deploy/android/example
        DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/doc/collectord-agent-android COMPONENT android)

# It is for phones, and can be installed on any machine.
set(CPACK_DEBIAN_ANDROID_PACKAGE_NAME collectord-agent-android)
set(CPACK_DEBIAN_ANDROID_PACKAGE_ARCHITECTURE all)
set(CPACK_DEBIAN_ANDROID_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_ANDROID_PACKAGE_SHLIBDEPS OFF)
set(CPACK_DEBIAN_ANDROID_PACKAGE_ENHANCES collectord)
set(CPACK_COMPONENT_ANDROID_DESCRIPTION "agent of collectord for apps on Android
The library that goes into a traced app: for `collectctl android run`, which
copies it to the phone, and as an AAR with Prefab metadata, in a Maven
repository in /usr/share/collectord/android/maven, for apps that link it.")

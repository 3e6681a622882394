# How other projects find the agent that `cmake --install` put somewhere: find_package(collect_agent) and
# pkg-config collect-agent. AGENT.md "Linking the agent" has what they offer.
include(CMakePackageConfigHelpers)
set(agent_cmake_dir ${CMAKE_INSTALL_LIBDIR}/cmake/collect_agent)

# Flags for what is to be recorded: the agent's own target has none, since a program may link it for its
# C API alone. gcc leaves out what headers of the system bring; clang has no such flag.
set(agent_exclude -finstrument-functions-exclude-file-list=/usr/)
add_library(collect_agent_instrument INTERFACE)
target_compile_options(collect_agent_instrument INTERFACE
  $<$<COMPILE_LANGUAGE:C,CXX>:-finstrument-functions>
  $<$<OR:$<COMPILE_LANG_AND_ID:C,GNU>,$<COMPILE_LANG_AND_ID:CXX,GNU>>:${agent_exclude}>)
set_target_properties(collect_agent_instrument PROPERTIES EXPORT_NAME instrument)
install(TARGETS collect_agent_instrument EXPORT collect_agent)
install(EXPORT collect_agent NAMESPACE collect_agent:: FILE collect_agentTargets.cmake
        DESTINATION ${agent_cmake_dir} COMPONENT agent)

configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/collect_agentConfig.cmake.in
  ${CMAKE_CURRENT_BINARY_DIR}/collect_agentConfig.cmake INSTALL_DESTINATION ${agent_cmake_dir}
  NO_SET_AND_CHECK_MACRO)
# Before 1.0 the minor version says what fits.
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/collect_agentConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/collect_agentConfig.cmake
              ${CMAKE_CURRENT_BINARY_DIR}/collect_agentConfigVersion.cmake
        DESTINATION ${agent_cmake_dir} COMPONENT agent)

# Every folder by its way from the file's own: what is installed may be moved.
set(agent_pc_dir /${CMAKE_INSTALL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH agent_prefix ${agent_pc_dir} /)
string(REGEX REPLACE "/$" "" agent_prefix ${agent_prefix})
if(TARGET collect_agent)
  set(agent_private_libs "Libs.private: -pthread")
else()
  set(agent_public_libs " -pthread")
endif()
configure_file(${PROJECT_SOURCE_DIR}/cmake/collect-agent.pc.in
               ${CMAKE_CURRENT_BINARY_DIR}/collect-agent.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/collect-agent.pc
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT agent)

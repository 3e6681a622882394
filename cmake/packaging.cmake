# What `cmake --install` and `cmake --build … --target package` put where. Two components, which are
# two Debian packages: the daemon with everything around it, and the agent for traced programs. A third,
# if it was built: the agent for apps on Android.

# collectctl looks for the agent, which agent/CMakeLists.txt installs, in ../lib and
# ../lib/<multiarch>.
foreach(program collectord collectctl collect-conformance collect-load)
  if(TARGET ${program})
    install(TARGETS ${program} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT daemon)
  endif()
endforeach()
# Started by both, from ../libexec/collectord.
install(TARGETS collect-symbolizer collect-planner collect-page collect-calls collect-store
        RUNTIME DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/collectord COMPONENT daemon)
if(TARGET collect-tui)
  install(TARGETS collect-tui
          RUNTIME DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/collectord COMPONENT daemon)
endif()
install(FILES agent/AGENT.md
        DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/doc/libcollect-agent COMPONENT agent)
install(DIRECTORY agent/example
        DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/doc/libcollect-agent COMPONENT agent)

install(DIRECTORY proto/control/collect proto/control/google
        DESTINATION ${CMAKE_INSTALL_DATADIR}/collect/proto COMPONENT daemon
        FILES_MATCHING PATTERN "*.proto")
set(COLLECT_ANDROID_AGENT "" CACHE PATH
    "What `deploy/agents.sh android` made, build/agents/android; empty: no package with it")
if(COLLECT_ANDROID_AGENT)
  include(cmake/android_package.cmake)
endif()

install(FILES deploy/systemd/collectord.service deploy/systemd/collectord.socket
              deploy/systemd/collectord-control.socket
        DESTINATION lib/systemd/system COMPONENT daemon)
install(FILES deploy/systemd/collectord.sysusers
        DESTINATION lib/sysusers.d RENAME collectord.conf COMPONENT daemon)
# As the service has it: Unix sockets for the members of its group, and no TCP. The rest of the file
# are the program's defaults, as comments.
file(READ ${PROJECT_SOURCE_DIR}/deploy/collectord.toml service_settings)
foreach(setting "ingest = \"127.0.0.1:7710\"|ingest = \"unix:/run/collectord/ingest.sock\""
                "control = \"127.0.0.1:7711\"|control = \"unix:/run/collectord/control.sock\""
                "local_access = \"user\"|local_access = \"group:collectord\"")
  string(REPLACE "|" ";" setting "${setting}")
  list(GET setting 0 default)
  list(GET setting 1 packaged)
  string(FIND "${service_settings}" "\n#${default}\n" at)
  if(at EQUAL -1)
    message(FATAL_ERROR "deploy/collectord.toml has no line \"#${default}\"")
  endif()
  string(REPLACE "\n#${default}\n" "\n# Default: ${default}\n${packaged}\n" service_settings
         "${service_settings}")
endforeach()
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/service/collectord.toml CONTENT "${service_settings}" @ONLY)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
             ${PROJECT_SOURCE_DIR}/deploy/collectord.toml)
install(FILES ${CMAKE_BINARY_DIR}/service/collectord.toml
        DESTINATION ${CMAKE_INSTALL_SYSCONFDIR}/collectord COMPONENT daemon)
install(PROGRAMS deploy/make-certificates.sh
        DESTINATION ${CMAKE_INSTALL_DATADIR}/collectord COMPONENT daemon)
# Documents in the folders of the tree, so that their links to each other work.
file(GLOB documents RELATIVE ${PROJECT_SOURCE_DIR} CONFIGURE_DEPENDS *.md)
foreach(room agent daemon deploy formats proto storage tests)
  file(GLOB_RECURSE documents_of_room RELATIVE ${PROJECT_SOURCE_DIR} CONFIGURE_DEPENDS ${room}/*.md)
  list(APPEND documents ${documents_of_room})
endforeach()
foreach(document ${documents})
  get_filename_component(folder ${document} DIRECTORY)
  install(FILES ${document} DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/doc/collectord/${folder}
          COMPONENT daemon)
endforeach()
# What they point at: the schema, the scripts, the samples and the pictures.
install(DIRECTORY deploy/guide/pictures
        DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/doc/collectord/deploy/guide COMPONENT daemon)
install(DIRECTORY proto/control/collect
        DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/doc/collectord/proto/control
        COMPONENT daemon FILES_MATCHING PATTERN "*.proto")
install(FILES deploy/grafana/collectord.json
        DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/doc/collectord/deploy/grafana COMPONENT daemon)
install(DIRECTORY deploy/clickhouse
        DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/doc/collectord/deploy COMPONENT daemon)
install(FILES deploy/schema/collectctl.schema.json
        DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/doc/collectord/deploy/schema COMPONENT daemon)
install(PROGRAMS proto/wire/example/agent.py
        DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/doc/collectord/proto/wire/example COMPONENT daemon)
install(FILES proto/wire/session.txt
        DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/doc/collectord/proto/wire COMPONENT daemon)
install(FILES proto/wire/example/agent.c
        DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/doc/collectord/proto/wire/example COMPONENT daemon)
install(PROGRAMS deploy/python/make-stubs.sh deploy/python/record.py
        DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/doc/collectord/deploy/python COMPONENT daemon)
install(PROGRAMS deploy/android/wrap.sh
        DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/doc/collectord/deploy/android COMPONENT daemon)
install(DIRECTORY agent/example
        DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/doc/collectord/agent COMPONENT daemon)
install(DIRECTORY deploy/android/example
        DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/doc/collectord/deploy/android COMPONENT daemon)
install(DIRECTORY deploy/ios/example
        DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/doc/collectord/deploy/ios COMPONENT daemon)

# Manual pages and shell completion come out of the programs' own --help.
if(NOT CMAKE_CROSSCOMPILING AND NOT COLLECT_SANITIZE AND NOT COLLECT_FUZZ)
  add_subdirectory(deploy)
endif()

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME collectord)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_DIRECTORY ${CMAKE_BINARY_DIR}/packages)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_COMPONENTS_ALL daemon agent ${android_component})
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE
    GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
# Places and shapes that only a Debian package has.
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/deploy/debian/stage.cmake)
set(CPACK_COLLECT_DEBIAN_DIR ${PROJECT_SOURCE_DIR}/deploy/debian)
set(CPACK_COLLECT_MULTIARCH ${CMAKE_LIBRARY_ARCHITECTURE})

set(COLLECT_PACKAGE_MAINTAINER "collectord maintainers <maintainers@collectord.invalid>"
    CACHE STRING "Maintainer of the packages")
set(CPACK_DEBIAN_PACKAGE_MAINTAINER ${COLLECT_PACKAGE_MAINTAINER})
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING IGNORE)

set(CPACK_DEBIAN_DAEMON_PACKAGE_NAME collectord)
set(CPACK_DEBIAN_DAEMON_PACKAGE_CONTROL_EXTRA
    ${PROJECT_SOURCE_DIR}/deploy/debian/conffiles ${PROJECT_SOURCE_DIR}/deploy/debian/postinst
    ${PROJECT_SOURCE_DIR}/deploy/debian/postrm ${PROJECT_SOURCE_DIR}/deploy/debian/prerm)
set(CPACK_DEBIAN_DAEMON_PACKAGE_DEPENDS
    "libcollect-agent (= ${PROJECT_VERSION}-1), systemd | systemd-standalone-sysusers | systemd-sysusers")
set(CPACK_DEBIAN_DAEMON_PACKAGE_SUGGESTS "adb, collectord-agent-android, usbmuxd")
set(CPACK_COMPONENT_DAEMON_DESCRIPTION "network trace-collection daemon
Programs built with -finstrument-functions and started with the agent of
libcollect-agent stream every call and return of every thread. collectord
stores them in files that tools can open; collectctl records programs,
steers recordings by gRPC and reads, checks and converts the files.")

set(CPACK_DEBIAN_AGENT_PACKAGE_NAME libcollect-agent)
set(CPACK_DEBIAN_AGENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_AGENT_PACKAGE_CONTROL_EXTRA ${PROJECT_SOURCE_DIR}/deploy/debian/triggers)
set(CPACK_COMPONENT_AGENT_DESCRIPTION "agent that streams function calls to collectord
The library that goes into a traced program, by LD_PRELOAD or by linking,
and the header of its C interface. It records function calls of threads
into rings in memory and ships them over TCP, TLS or Unix sockets.")
include(CPack)

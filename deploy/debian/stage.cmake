# Runs between the installation into CPack's staging folder and the making of the packages: moves
# files to where only Debian has them. Variables are CPack's and those that packaging.cmake sets.
function(collect_replace from to file)
  file(READ ${file} text)
  string(REPLACE "${from}" "${to}" replaced "${text}")
  if(replaced STREQUAL text)
    message(FATAL_ERROR "${file} has no \"${from}\"")
  endif()
  file(WRITE ${file} "${replaced}")
endfunction()

file(GLOB components LIST_DIRECTORIES true ${CPACK_TEMPORARY_DIRECTORY}/*)
foreach(component ${components})
  set(usr ${component}/usr)
  if(NOT IS_DIRECTORY ${usr})
    message(FATAL_ERROR "${component}: nothing was installed below /usr")
  endif()
  if(EXISTS ${usr}/etc)
    file(RENAME ${usr}/etc ${component}/etc)
  endif()
  file(GLOB libraries ${usr}/lib/libcollect_* ${usr}/lib/collect_*)
  if(libraries AND CPACK_COLLECT_MULTIARCH)
    file(MAKE_DIRECTORY ${usr}/lib/${CPACK_COLLECT_MULTIARCH})
    foreach(library ${libraries})
      get_filename_component(name ${library} NAME)
      file(RENAME ${library} ${usr}/lib/${CPACK_COLLECT_MULTIARCH}/${name})
    endforeach()
    # The path to them has one folder more.
    file(RENAME ${usr}/lib/pkgconfig ${usr}/lib/${CPACK_COLLECT_MULTIARCH}/pkgconfig)
    collect_replace("prefix=\${pcfiledir}/../.." "prefix=\${pcfiledir}/../../.."
      ${usr}/lib/${CPACK_COLLECT_MULTIARCH}/pkgconfig/collect-agent.pc)
    file(GLOB targets ${usr}/lib/cmake/collect_agent/collect_agentTargets-*.cmake)
    collect_replace("{_IMPORT_PREFIX}/lib/" "{_IMPORT_PREFIX}/lib/${CPACK_COLLECT_MULTIARCH}/" ${targets})
  endif()
  # Debian has another folder for zsh than other systems.
  if(EXISTS ${usr}/share/zsh/site-functions)
    file(RENAME ${usr}/share/zsh/site-functions ${usr}/share/zsh/vendor-completions)
  endif()
  set(package collectord)
  if(component MATCHES "/agent$")
    set(package libcollect-agent)
  elseif(component MATCHES "/android$")
    set(package collectord-agent-android)
  endif()
  set(documents ${usr}/share/doc/${package})
  file(COPY ${CPACK_COLLECT_DEBIAN_DIR}/copyright DESTINATION ${documents}
       FILE_PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
  file(COPY ${CPACK_COLLECT_DEBIAN_DIR}/${package}.lintian-overrides
       DESTINATION ${usr}/share/lintian/overrides
       FILE_PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
  file(RENAME ${usr}/share/lintian/overrides/${package}.lintian-overrides
       ${usr}/share/lintian/overrides/${package})
  execute_process(COMMAND gzip -9nc ${CPACK_COLLECT_DEBIAN_DIR}/changelog
                  OUTPUT_FILE ${documents}/changelog.Debian.gz COMMAND_ERROR_IS_FATAL ANY)
  file(CHMOD ${documents}/changelog.Debian.gz
       PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
endforeach()

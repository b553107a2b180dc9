# cmake --install: the program, its page and completion, and a CMake package with the target ptxrewrite::ptxrewrite.
# Two components: `runtime`, and `dev` with headers, static libraries and the CMake package (Debian.cmake packs them).
include(CMakePackageConfigHelpers)

set(PTXREWRITE_PACKAGE_DEPENDENCIES Threads fmt spdlog) # what the static libraries link
set(package_libraries ptxrewrite_support ptxrewrite_ir ptxrewrite_grammar ptxrewrite_transforms ptxrewrite_launch
    ptxrewrite_driver ptxrewrite_emulator ptxrewrite_cuda)
foreach(library ${package_libraries})
  if(NOT TARGET ${library})
    return()
  endif()
endforeach()

add_library(ptxrewrite_package INTERFACE)
target_link_libraries(ptxrewrite_package INTERFACE ${package_libraries})
# Objects are linked only into direct dependents; through this target they come as sources.
target_sources(ptxrewrite_package INTERFACE $<INSTALL_INTERFACE:$<TARGET_OBJECTS:ptxrewrite::ptxrewrite_transforms>>)
set_target_properties(ptxrewrite_package PROPERTIES EXPORT_NAME ptxrewrite)
# For pass libraries, which find everything else in the program that loads them.
add_library(ptxrewrite_headers INTERFACE)
target_link_libraries(ptxrewrite_headers INTERFACE ptxrewrite_options)
set_target_properties(ptxrewrite_headers PROPERTIES EXPORT_NAME headers)
install(TARGETS ptxrewrite_package ptxrewrite_headers ptxrewrite_options ${package_libraries} EXPORT ptxrewriteTargets
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}/ptxrewrite COMPONENT dev
        OBJECTS DESTINATION ${CMAKE_INSTALL_LIBDIR}/ptxrewrite COMPONENT dev)
install(EXPORT ptxrewriteTargets NAMESPACE ptxrewrite:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/ptxrewrite
        COMPONENT dev)

# Includes are written from the project root, so the folders keep their names below one folder of ours.
install(CODE "
  include(${CMAKE_CURRENT_LIST_DIR}/HeaderClosure.cmake)
  ptxrewrite_header_closure(headers ${PROJECT_SOURCE_DIR})
  foreach(header IN LISTS headers)
    get_filename_component(folder \${header} DIRECTORY)
    file(INSTALL DESTINATION \${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_INCLUDEDIR}/ptxrewrite/\${folder} TYPE FILE
         FILES ${PROJECT_SOURCE_DIR}/\${header})
  endforeach()" COMPONENT dev)

# Pass libraries are checked against the project's version.
file(READ ${PROJECT_SOURCE_DIR}/transforms/manager/pass.h pass_header)
string(REGEX MATCH "interface_major = ([0-9]+)" interface_major "${pass_header}")
set(interface_version ${CMAKE_MATCH_1})
string(REGEX MATCH "interface_minor = ([0-9]+)" interface_minor "${pass_header}")
string(APPEND interface_version .${CMAKE_MATCH_1})
if(NOT interface_version STREQUAL "${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}")
  message(FATAL_ERROR "transforms/manager/pass.h says interface ${interface_version}, and the project is ${PROJECT_VERSION}")
endif()

configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/ptxrewriteConfig.cmake.in
  ${CMAKE_CURRENT_BINARY_DIR}/ptxrewriteConfig.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/ptxrewrite)
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/ptxrewriteConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/ptxrewriteConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/ptxrewriteConfigVersion.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/ptxrewrite COMPONENT dev)

if(TARGET ptxrewrite)
  install(TARGETS ptxrewrite ptxrewrite-ptxas RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT runtime)
  install(FILES docs/ptxrewrite.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT runtime OPTIONAL)
  install(FILES cli/completion/ptxrewrite.bash RENAME ptxrewrite
          DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions COMPONENT runtime)
  install(FILES cli/completion/_ptxrewrite DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions
          COMPONENT runtime)
  install(FILES cli/completion/ptxrewrite.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d
          COMPONENT runtime)
endif()
include(Debian)

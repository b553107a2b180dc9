# Sources compiled several at a time (CMake's unity build): headers are most of the cost of a small source, so a
# clean build takes less than half the time. -DPTXREWRITE_UNITY=OFF compiles each source alone, for work on one of them
# and to find missing includes.
option(PTXREWRITE_UNITY "Compile the sources of a folder together" ON)

# ptxrewrite_unity(TARGET...): up to eight sources of one folder become one compilation. Sources that repeat a local
# name by convention stay alone: those that register a pass, and those for which the calling folder's
# CMakeLists.txt has set SKIP_UNITY_BUILD_INCLUSION.
function(ptxrewrite_unity)
  if(NOT PTXREWRITE_UNITY)
    return()
  endif()
  set(most 8)
  foreach(target ${ARGN})
    get_target_property(sources ${target} SOURCES)
    list(SORT sources)
    set(previous "")
    set(count 0)
    foreach(source ${sources})
      if(NOT source MATCHES "\\.cpp$")
        continue()
      endif()
      file(STRINGS ${source} registers REGEX "^(static )?const RegisterPass" LIMIT_COUNT 1)
      if(registers)
        set_source_files_properties(${source} TARGET_DIRECTORY ${target} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
        continue()
      endif()
      get_filename_component(folder ${source} DIRECTORY)
      get_filename_component(folder ${folder} ABSOLUTE)
      if(NOT folder STREQUAL previous)
        set(previous ${folder})
        set(count 0)
      endif()
      math(EXPR part "${count} / ${most}")
      math(EXPR count "${count} + 1")
      file(RELATIVE_PATH group ${PROJECT_SOURCE_DIR} ${folder})
      string(REPLACE "/" "_" group ${group})
      set_source_files_properties(${source} TARGET_DIRECTORY ${target} PROPERTIES UNITY_GROUP ${group}_${part})
    endforeach()
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
    # g++ treats local names of an included file like those of a header.
    target_compile_options(${target} PRIVATE -Wno-subobject-linkage)
  endforeach()
endfunction()

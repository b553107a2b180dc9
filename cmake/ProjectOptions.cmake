# Compiler settings shared by every target: warnings, sanitizers, fast linker and compiler cache.
option(PTXREWRITE_SANITIZE "Build with AddressSanitizer and UndefinedBehaviorSanitizer" OFF)
option(PTXREWRITE_SANITIZE_THREADS "Build with ThreadSanitizer" OFF)
option(PTXREWRITE_WARNINGS_AS_ERRORS "Treat warnings as errors" ON)

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # The base directory makes paths relative before hashing, so that other clones of the same sources hit, too.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1
      CCACHE_SLOPPINESS=pch_defines,time_macros ${CCACHE_PROGRAM})
endif()
find_program(MOLD_PROGRAM mold)
if(MOLD_PROGRAM)
  add_link_options(-fuse-ld=mold)
endif()
if(PTXREWRITE_SANITIZE)
  # The preset leaves NDEBUG undefined: our asserts and the standard library's are active, too.
  # GCC 12 reports uninitialised members in the standard library's <regex> when it checks every access.
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
                      -Wno-maybe-uninitialized)
  add_compile_definitions(_GLIBCXX_ASSERTIONS)
  add_link_options(-fsanitize=address,undefined)
endif()
if(PTXREWRITE_SANITIZE_THREADS)
  add_compile_options(-fsanitize=thread -fno-omit-frame-pointer)
  add_link_options(-fsanitize=thread)
endif()

# Position-independent code as fast as other code: nobody interposes other functions for ours.
add_compile_options(-fno-semantic-interposition)

add_library(ptxrewrite_options INTERFACE)
set(warnings -Wall -Wextra -Wno-missing-field-initializers
  -Wno-restrict) # g++ 12 raises it for std::string additions that are fine (its bug 105651)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # -Wrestrict: g++ 12 reports overlaps in std::string concatenation that do not exist (GCC bug 105651).
  list(APPEND warnings -Wshadow=local -Wno-restrict)
endif()
if(PTXREWRITE_WARNINGS_AS_ERRORS)
  list(APPEND warnings -Werror)
endif()
# Only for our own code: users of the installed package choose their own options.
target_compile_options(ptxrewrite_options INTERFACE "$<BUILD_INTERFACE:${warnings}>")
target_include_directories(ptxrewrite_options INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
                           $<INSTALL_INTERFACE:include/ptxrewrite>)
target_compile_features(ptxrewrite_options INTERFACE cxx_std_20)

# ptxrewrite_compile_quickly(TARGET...): for code that runs once per launch, file, candidate or report. Full optimisation
# takes 1.5 times the compile time of -O1 and gains nothing there (passes of transforms/ on 168 files: within noise).
function(ptxrewrite_compile_quickly)
  foreach(target ${ARGN})
    target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
  endforeach()
endfunction()

# ptxrewrite_folder_library(NAME DEPENDS...): the library of the calling folder, from all sources below it. A folder
# with headers only becomes an interface library of the same name.
function(ptxrewrite_folder_library name)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  if(sources)
    add_library(${name} STATIC ${sources})
    target_link_libraries(${name} PUBLIC ptxrewrite_options ${ARGN})
  else()
    add_library(${name} INTERFACE)
    target_link_libraries(${name} INTERFACE ptxrewrite_options ${ARGN})
  endif()
endfunction()

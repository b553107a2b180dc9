# Targets `format`, `format-check` and `tidy` over all our sources, if clang's tools are installed.
file(GLOB_RECURSE style_sources CONFIGURE_DEPENDS
     ${PROJECT_SOURCE_DIR}/support/*.cpp ${PROJECT_SOURCE_DIR}/support/*.h
     ${PROJECT_SOURCE_DIR}/ir/*.cpp ${PROJECT_SOURCE_DIR}/ir/*.h
     ${PROJECT_SOURCE_DIR}/grammar/*.cpp ${PROJECT_SOURCE_DIR}/grammar/*.h
     ${PROJECT_SOURCE_DIR}/transforms/*.cpp ${PROJECT_SOURCE_DIR}/transforms/*.h
     ${PROJECT_SOURCE_DIR}/launch/*.cpp ${PROJECT_SOURCE_DIR}/launch/*.h
     ${PROJECT_SOURCE_DIR}/emulator/*.cpp ${PROJECT_SOURCE_DIR}/emulator/*.h
     ${PROJECT_SOURCE_DIR}/cuda/*.cpp ${PROJECT_SOURCE_DIR}/cuda/*.h
     ${PROJECT_SOURCE_DIR}/evaluate/*.cpp ${PROJECT_SOURCE_DIR}/evaluate/*.h
     ${PROJECT_SOURCE_DIR}/python/*.cpp ${PROJECT_SOURCE_DIR}/python/*.h
     ${PROJECT_SOURCE_DIR}/examples/*.cpp ${PROJECT_SOURCE_DIR}/examples/*.h
     ${PROJECT_SOURCE_DIR}/cli/*.cpp ${PROJECT_SOURCE_DIR}/cli/*.h
     ${PROJECT_SOURCE_DIR}/tests/*.cpp ${PROJECT_SOURCE_DIR}/tests/*.h)
find_program(CLANG_FORMAT_PROGRAM clang-format)
if(CLANG_FORMAT_PROGRAM)
  add_custom_target(format COMMAND ${CLANG_FORMAT_PROGRAM} -i ${style_sources} VERBATIM)
  add_custom_target(format-check COMMAND ${CLANG_FORMAT_PROGRAM} --dry-run --Werror ${style_sources} VERBATIM)
endif()
find_program(CLANG_TIDY_PROGRAM NAMES clang-tidy-19 clang-tidy)
if(CLANG_TIDY_PROGRAM)
  set(tidy_sources ${style_sources})
  list(FILTER tidy_sources INCLUDE REGEX "/(support|ir|grammar|transforms|launch|emulator|cuda|evaluate|cli|examples)/.*\\.cpp$")
  add_custom_target(tidy COMMAND ${CLANG_TIDY_PROGRAM} --quiet -p ${CMAKE_BINARY_DIR} ${tidy_sources} VERBATIM)
endif()

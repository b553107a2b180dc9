# ninja api_reference: pages about the public headers, by Doxygen, in the build folder's api/html.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
find_program(DOXYGEN_PROGRAM doxygen)
if(DOXYGEN_PROGRAM)
  add_custom_target(api_reference COMMAND ${Python3_EXECUTABLE} -B ${PROJECT_SOURCE_DIR}/docs/api/make_api.py
                    ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}/api USES_TERMINAL VERBATIM)
endif()

# Targets that take minutes: tables, benchmarks, campaigns. Each has a short form that ctest runs, so that none breaks
# unnoticed: the same program with less work.
#
#   ptxrewrite_long_target(NAME LONG PROGRAM ARGUMENT... [AND PROGRAM ARGUMENT...]
#                          SHORT PROGRAM ARGUMENT... [AND ...]      ctest entries short/NAME, short/NAME_2 ...
#                          | SHORT_IS TEST...                       existing ctest entries
#                          [DEPENDS TARGET...])
#
# tests/layering/check_targets.py reports targets without a short form.
function(ptxrewrite_long_target name)
  cmake_parse_arguments(PARSE_ARGV 1 given "" "" "LONG;SHORT;SHORT_IS;DEPENDS")
  string(REPLACE ";AND;" ";COMMAND;" commands "${given_LONG}")
  add_custom_target(${name} COMMAND ${commands} DEPENDS ${given_DEPENDS} USES_TERMINAL VERBATIM)
  set(tests ${given_SHORT_IS})
  set(number 1)
  set(test short/${name})
  set(command)
  foreach(word ${given_SHORT} AND)
    if(NOT word STREQUAL "AND")
      list(APPEND command "${word}")
    elseif(command)
      add_test(NAME ${test} COMMAND ${command})
      set_tests_properties(${test} PROPERTIES LABELS short)
      list(APPEND tests ${test})
      math(EXPR number "${number} + 1")
      set(test short/${name}_${number})
      set(command)
    endif()
  endforeach()
  string(REPLACE ";" " " long "${given_LONG}")
  string(REPLACE ";" " " tests "${tests}")
  set_property(GLOBAL APPEND_STRING PROPERTY PTXREWRITE_LONG_TARGETS "${name}\t${tests}\t${long}\n")
endfunction()

# Changes ANTLR's generated parser so that its automaton is built when a syntax error asks for the expected tokens, and
# not at each start of the program: cmake -DPARSER=path/to/PtxParser -P lazy_automaton.cmake
function(replace_once file before after)
  file(READ ${file} text)
  string(FIND "${text}" "${before}" place)
  if(place EQUAL -1)
    message(FATAL_ERROR "${file}: the generated parser has no '${before}'")
  endif()
  string(REPLACE "${before}" "${after}" text "${text}")
  file(WRITE ${file} "${text}")
endfunction()

replace_once(${PARSER}.h "getATN() const override { return _atn; };" "getATN() const override;")
replace_once(${PARSER}.cpp "PtxParser::Initializer PtxParser::_init;"
             "const atn::ATN& PtxParser::getATN() const {\n  static const Initializer once;\n  return _atn;\n}")

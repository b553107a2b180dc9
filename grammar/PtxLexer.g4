// The words of PTX. A dotted word (`ld.global.v4.f32`, `%tid.x`) is one token, so that an instruction is few tokens; a
// blank or a comment may precede a dot, and then the parts arrive as separate DOTTED tokens.
// The reader runs this grammar's automaton over bytes from flat tables (grammar/lexer_tables.h). Bytes above 127 and
// NUL are rejected before; no rule may need predicates or lexer modes.
lexer grammar PtxLexer;

WHITESPACE    : [ \t\r\n\f]+ -> skip ;
// Kept: our own tools' annotations.
ANNOTATION    : '//@' ~[\n]* ;
LINE_COMMENT  : '//' ( ~[@\n] ~[\n]* )? -> skip ;
BLOCK_COMMENT : '/*' ( ~'*' | '*'+ ~[*/] )* '*'+ '/' -> skip ;
LINE_MARKER   : '#' [ \t]* ( 'line' [ \t]+ )? [0-9]+ ( [ \t\r] ~[\n]* )? -> skip ;
UNTERMINATED_COMMENT : '/*' ( ~'*' | '*'+ ~[*/] )* '*'* ;

STRING              : '"' ~["]* '"' ;
UNTERMINATED_STRING : '"' ~["]* ;

INTEGER
    : [1-9] [0-9]* 'U'?
    | '0' [0-7]* 'U'?
    | '0' [xX] [0-9a-fA-F]+ 'U'?
    | '0' [bB] [01]+ 'U'?
    ;
FLOAT
    : [0-9]+ '.' [0-9]* EXPONENT?
    | '.' [0-9]+ EXPONENT?
    | [0-9]+ EXPONENT
    ;
fragment EXPONENT : [eE] [+-]? [0-9]+ ;
FLOAT32_BITS : '0' [fF] HEX HEX HEX HEX HEX HEX HEX HEX ;
FLOAT64_BITS : '0' [dD] HEX HEX HEX HEX HEX HEX HEX HEX HEX HEX HEX HEX HEX HEX HEX HEX ;
fragment HEX : [0-9a-fA-F] ;

WARP_SIZE  : 'WARP_SZ' ;
UNDERSCORE : '_' ;
IDENTIFIER : NAME ;
MNEMONIC   : NAME ( '.' PART )+ ;
fragment NAME : [a-zA-Z] [a-zA-Z0-9_$]* | [_$%] [a-zA-Z0-9_$]+ ;
fragment PART : [a-zA-Z0-9_$]+ ( '::' [a-zA-Z0-9_$]+ | ':' [0-9]+ )* ; // .shared::cta, .sp::2:4

VERSION        : '.version' ;
TARGET         : '.target' ;
ADDRESS_SIZE   : '.address_size' ;
EXTERN         : '.extern' ;
VISIBLE        : '.visible' ;
WEAK           : '.weak' ;
COMMON         : '.common' ;
ENTRY          : '.entry' ;
FUNC           : '.func' ;
ALIAS          : '.alias' ;
FILE_DIRECTIVE : '.file' ;
SECTION        : '.section' ;
DWARF          : '@@DWARF' ~[\n]* ;
PRAGMA         : '.pragma' ;
LOC            : '.loc' ;
LOC_BETWEEN    : '.loc_intermediate' ;
BRANCHTARGETS  : '.branchtargets' ;
CALLTARGETS    : '.calltargets' ;
CALLPROTOTYPE  : '.callprototype' ;
ATTRIBUTE      : '.attribute' ;
ALIGN          : '.align' ;
REG            : '.reg' ;
CONST          : '.const' ;
GLOBAL         : '.global' ;
LOCAL          : '.local' ;
PARAM          : '.param' ;
SHARED         : '.shared' ;
TEX            : '.tex' ;
R2D2_SECTION   : '.r2d2.coefficient' | '.r2d2.thread' | '.r2d2.block' | '.dac.affine' ;
R2D2_LINEAR    : '.r2d2.linear' ;
DOTTED         : '.' PART ;

COMMA         : ',' ;
SEMICOLON     : ';' ;
COLON         : ':' ;
LEFT_BRACE    : '{' ;
RIGHT_BRACE   : '}' ;
LEFT_BRACKET  : '[' ;
RIGHT_BRACKET : ']' ;
LEFT_PAREN    : '(' ;
RIGHT_PAREN   : ')' ;
AT            : '@' ;
EQUAL         : '=' ;
PLUS          : '+' ;
MINUS         : '-' ;
TIMES         : '*' ;
DIVIDE        : '/' ;
PERCENT       : '%' ;
EXCLAMATION   : '!' ;
TILDE         : '~' ;
PIPE          : '|' ;
AMPERSAND     : '&' ;
CARET         : '^' ;
LOGICAL_AND   : '&&' ;
LOGICAL_OR    : '||' ;
SHIFT_LEFT    : '<<' ;
SHIFT_RIGHT   : '>>' ;
LESS          : '<' ;
GREATER       : '>' ;
LESS_EQUAL    : '<=' ;
GREATER_EQUAL : '>=' ;
EQUAL_EQUAL   : '==' ;
NOT_EQUAL     : '!=' ;
QUESTION      : '?' ;

// Everything else: no parser rule accepts it.
UNKNOWN_CHARACTER : . ;

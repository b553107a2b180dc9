// The shape of PTX. The ISA table (ir/isa/isa.h) decides which modifiers and operands an instruction may have, so one
// coarse rule serves every opcode. The actions call ReaderActions (grammar/actions.h), which fills the IR's tables
// while the text is read; no tree is built.
// Every decision here is LL(1): the generated code is plain switches and never predicts by simulation. The test
// `grammar/ll1` checks this.
// `item` and `statement` are the two entries. A function item ends after its opening brace; the reader then calls
// `statement` until the body is closed, which keeps memory constant for bodies of any length.
parser grammar PtxParser;

options { tokenVocab = PtxLexer; superClass = ParserBase; }

@parser::postinclude {
#include "grammar/parser_base.h"
}

// ---------------------------------------------------------------- items

item
    : VERSION { actions->begin_version(last()); } ( FLOAT | INTEGER ) { actions->version(last()); }
    | TARGET ( IDENTIFIER | MNEMONIC ) { actions->target(last()); } ( COMMA ( IDENTIFIER | MNEMONIC ) { actions->target(last()); } )*
    | ADDRESS_SIZE INTEGER { actions->address_size(last()); }
    | FILE_DIRECTIVE { actions->begin_file(last()); } INTEGER STRING ( COMMA INTEGER COMMA INTEGER )? { actions->verbatim(); }
    | SECTION sectionName LEFT_BRACE sectionBody RIGHT_BRACE { actions->verbatim(); }
    | ALIAS IDENTIFIER { actions->alias_name(last()); } COMMA IDENTIFIER { actions->alias_target(last()); } SEMICOLON { actions->verbatim(); }
    | PRAGMA STRING { actions->module_pragma(last()); } ( COMMA STRING { actions->module_pragma(last()); } )* SEMICOLON { actions->verbatim(); }
    | DWARF { actions->dwarf(last()); }
    | linkage* ( function | variables SEMICOLON { actions->end_module_variables(); } )
    ;

linkage
    : ( EXTERN | VISIBLE | WEAK | COMMON ) { actions->linkage(last()); }
    ;

sectionName
    : DOTTED | TEX | CONST | GLOBAL | SHARED | LOCAL | PARAM | REG
    ;

sectionBody
    : ( IDENTIFIER COLON
      | DOTTED { actions->section_word(last()); }
        ( sectionName ( PLUS INTEGER )?
        | IDENTIFIER ( ( PLUS | MINUS ) ( INTEGER | IDENTIFIER ) )?
        | ( MINUS { actions->section_minus(); } )? INTEGER { actions->section_number(last()); }
          ( COMMA ( MINUS { actions->section_minus(); } )? INTEGER { actions->section_number(last()); } )*
        )
      )*
    ;

// ---------------------------------------------------------------- functions

function
    : ( ENTRY | FUNC ) { actions->begin_function(last()); }
      ( attribute { actions->function_attribute(); } )?
      ( LEFT_PAREN { actions->begin_results(); } parameters RIGHT_PAREN { actions->end_parameters(last()); } )?
      IDENTIFIER { actions->function_name(last()); }
      ( LEFT_PAREN { actions->begin_parameters(); } parameters RIGHT_PAREN { actions->end_parameters(last()); } )?
      headerDirective*
      ( SEMICOLON { actions->end_prototype(last()); } | LEFT_BRACE { actions->begin_body(last()); } )?
      // ptxas accepts a prototype without a semicolon if another item follows.
      { actions->end_header(); }
    ;

parameters
    : ( parameter ( COMMA parameter )* )?
    ;

parameter
    : { actions->begin_declaration(); } declarationWord+
      ( ( IDENTIFIER | UNDERSCORE ) { actions->declared_name(last()); } dimensions { actions->end_declarator(); } )
    ;

headerDirective
    : PRAGMA { actions->header_directive(last()); } STRING { actions->header_string(last()); }
      ( COMMA STRING { actions->header_string(last()); } )* SEMICOLON
    | DOTTED { actions->header_directive(last()); }
      ( headerValue ( COMMA headerValue )* )?
    ;

headerValue
    : INTEGER { actions->header_number(last()); }
    | STRING { actions->header_string(last()); }
    ;

// ---------------------------------------------------------------- declarations

variables
    : { actions->begin_declaration(); } declarationWord+ declarator ( COMMA declarator )*
    ;

declarationWord
    : ALIGN INTEGER { actions->declared_alignment(last()); }
    | attribute { actions->declared_attribute(); }
    | CONST { actions->declared_space(last()); } ( LEFT_BRACKET INTEGER { actions->declared_bank(last()); } RIGHT_BRACKET )?
    | ( GLOBAL | LOCAL | PARAM | SHARED | REG | TEX ) { actions->declared_space(last()); }
    | DOTTED { actions->declared_word(last()); }
    ;

declarator
    : IDENTIFIER { actions->declared_name(last()); }
      ( LESS INTEGER { actions->declared_count(last()); } GREATER )?
      dimensions
      ( EQUAL { actions->begin_initialiser(last()); } initialiser { actions->end_initialiser(); } )?
      { actions->end_declarator(); }
    ;

dimensions
    : ( LEFT_BRACKET { actions->begin_dimension(); } ( constant { actions->dimension(); } )? RIGHT_BRACKET { actions->end_dimension(); } )*
    ;

attribute
    : ATTRIBUTE { actions->begin_attribute(last()); } LEFT_PAREN attributeValue ( COMMA attributeValue )* RIGHT_PAREN { actions->end_attribute(last()); }
    ;

attributeValue
    : DOTTED { actions->attribute_word(last()); } ( LEFT_PAREN INTEGER COMMA INTEGER RIGHT_PAREN )?
    ;

initialiser
    : LEFT_BRACE { actions->begin_vector(last()); } ( initialiser ( COMMA initialiser )* )? RIGHT_BRACE { actions->end_vector(last()); }
    | IDENTIFIER { actions->initialiser_name(last()); }
      ( LEFT_PAREN IDENTIFIER { actions->initialiser_generic(last()); } RIGHT_PAREN ( PLUS constant { actions->symbol_offset(); } )?
      | PLUS constant { actions->symbol_offset(); }
      | EQUAL { actions->initialiser_property(); } ( IDENTIFIER { actions->property_word(last()); } | constant { actions->constant_operand(); } )
      )?
    | INTEGER { actions->integer(last()); }
      ( LEFT_PAREN IDENTIFIER { actions->initialiser_mask(last()); }
        ( LEFT_PAREN IDENTIFIER { actions->initialiser_generic(last()); } RIGHT_PAREN )? { actions->end_initialiser_mask(); }
        ( PLUS constant { actions->symbol_offset(); } )? RIGHT_PAREN
      | { actions->begin_constant_tail(); } constantTail { actions->constant_operand(); } )?
    | FLOAT { actions->decimal(last()); } ( { actions->begin_constant_tail(); } constantTail { actions->constant_operand(); } )?
    | ( FLOAT32_BITS | FLOAT64_BITS ) { actions->float_bits(last()); } // no part of expressions
    | ( WARP_SIZE { actions->begin_constant(); actions->constant_warp_size(last()); }
      | { actions->begin_constant(); } ( constantPrefix | parenthesisedConstant ) )
      constantTail? { actions->constant_operand(); }
    ;

// ---------------------------------------------------------------- statements

statement
    : RIGHT_BRACE { actions->close_scope(last()); }
    | LEFT_BRACE { actions->open_scope(last()); }
    | IDENTIFIER { actions->begin_statement(last()); }
      ( COLON { actions->label_begins(); } labelled? { actions->label_ends(); }
      | modifier* ( operand ( COMMA operand )* )? SEMICOLON { actions->end_instruction(last()); } )
    | MNEMONIC { actions->begin_statement(last()); }
      modifier* ( operand ( COMMA operand )* )? SEMICOLON { actions->end_instruction(last()); }
    | AT { actions->begin_guard(last()); } ( EXCLAMATION { actions->negate_guard(); } )?
      ( IDENTIFIER { actions->guard(last()); }
      | MNEMONIC { actions->queue_guard(last()); } LEFT_PAREN INTEGER { actions->queue_number(last()); } RIGHT_PAREN )
      ( IDENTIFIER | MNEMONIC ) { actions->guarded_opcode(last()); }
      modifier* ( operand ( COMMA operand )* )? SEMICOLON { actions->end_instruction(last()); }
    | LOC { actions->begin_location(last()); } INTEGER { actions->location_number(last()); }
      INTEGER { actions->location_number(last()); } INTEGER { actions->location_number(last()); }
      ( COMMA IDENTIFIER { actions->location_word(last(), "function_name"); }
        IDENTIFIER { actions->location_label(last()); } ( PLUS INTEGER { actions->location_label_offset(last()); } )?
        COMMA IDENTIFIER { actions->location_word(last(), "inlined_at"); }
        INTEGER { actions->location_number(last()); } INTEGER { actions->location_number(last()); }
        INTEGER { actions->location_number(last()); } )?
      { actions->end_location(); }
    | LOC_BETWEEN { actions->begin_intermediate_location(last()); } INTEGER { actions->location_number(last()); }
      INTEGER { actions->location_number(last()); } INTEGER { actions->location_number(last()); } { actions->end_location(); }
    | PRAGMA { actions->begin_pragma(last()); } STRING { actions->pragma_string(last()); }
      ( COMMA STRING { actions->pragma_string(last()); } )* SEMICOLON { actions->end_pragma(last()); }
    | variables SEMICOLON { actions->end_local_declaration(last()); }
    | R2D2_SECTION { actions->begin_hardware_section(last()); } LEFT_BRACE { actions->open_hardware_section(last()); }
    | R2D2_LINEAR { actions->begin_linear_row(last()); } IDENTIFIER { actions->linear_name(last()); } EQUAL
      ( IDENTIFIER { actions->linear_part(last()); } | INTEGER { actions->linear_zero(last()); } ) PLUS
      ( IDENTIFIER { actions->linear_part(last()); } | INTEGER { actions->linear_zero(last()); } ) SEMICOLON { actions->end_linear_row(last()); }
    ;

labelled
    : BRANCHTARGETS { actions->begin_label_table(last(), false); } tableEntry ( COMMA tableEntry )* SEMICOLON { actions->end_label_table(last()); }
    | CALLTARGETS { actions->begin_label_table(last(), true); } IDENTIFIER { actions->call_target(last()); }
      ( COMMA IDENTIFIER { actions->call_target(last()); } )* SEMICOLON { actions->end_label_table(last()); }
    | CALLPROTOTYPE { actions->begin_call_prototype(last()); }
      ( LEFT_PAREN { actions->begin_results(); } parameters RIGHT_PAREN { actions->end_parameters(last()); } )?
      UNDERSCORE
      ( LEFT_PAREN { actions->begin_parameters(); } parameters RIGHT_PAREN { actions->end_parameters(last()); } )?
      headerDirective* SEMICOLON { actions->end_call_prototype(last()); }
    ;

tableEntry
    : IDENTIFIER { actions->branch_target(last()); } ( LESS INTEGER { actions->branch_target_count(last()); } GREATER )?
    ;

// The rest of a mnemonic with blanks before its dots.
modifier
    : ( DOTTED | GLOBAL | CONST | LOCAL | PARAM | SHARED | TEX | REG | WEAK | ALIAS | COMMON | ALIGN | TARGET | SECTION | FUNC | ENTRY )
      { actions->modifier(last()); }
    ;

// ---------------------------------------------------------------- operands

operand
    : ( IDENTIFIER | MNEMONIC ) { actions->name(last()); } ( DOTTED { actions->selector(last()); } )*
      ( PIPE { actions->begin_pair(); } pairSecond
      | LEFT_BRACKET { actions->begin_index(last()); } index RIGHT_BRACKET { actions->end_address(last()); }
      | PLUS constant { actions->symbol_offset(); } )?
    | UNDERSCORE { actions->sink(last()); } ( PIPE { actions->begin_pair(); } pairSecond )?
    | INTEGER { actions->integer(last()); } ( { actions->begin_constant_tail(); } constantTail { actions->constant_operand(); } )?
    | FLOAT { actions->decimal(last()); } ( { actions->begin_constant_tail(); } constantTail { actions->constant_operand(); } )?
    | ( FLOAT32_BITS | FLOAT64_BITS ) { actions->float_bits(last()); } // no part of expressions
    | WARP_SIZE { actions->begin_constant(); actions->constant_warp_size(last()); } constantTail? { actions->constant_operand(); }
    | ( TILDE | PLUS ) { actions->begin_constant(); actions->constant_prefix(last()); } constantTerm constantTail? { actions->constant_operand(); }
    | ( EXCLAMATION | MINUS ) { actions->sign(last()); }
      ( ( IDENTIFIER | MNEMONIC ) { actions->signed_name(last()); } ( DOTTED { actions->selector(last()); } )*
        ( PIPE { actions->begin_pair(); } pairSecond )?
      | { actions->signed_constant(); } constantTerm constantTail? { actions->constant_operand(); } )
    | LEFT_BRACE { actions->begin_vector(last()); } ( operand ( COMMA operand )* )? RIGHT_BRACE { actions->end_vector(last()); }
      ( PIPE { actions->begin_pair(); } pairSecond )?
    | LEFT_BRACKET { actions->begin_address(last()); } address RIGHT_BRACKET { actions->end_address(last()); }
      ( DOTTED { actions->address_suffix(last()); } )*
    | LEFT_PAREN { actions->begin_list(last()); }
      ( DOTTED { actions->begin_cast(last()); } RIGHT_PAREN constantTerm constantTail? { actions->constant_operand(); }
      | RIGHT_PAREN { actions->end_list(last()); }
      | operand ( COMMA operand )* RIGHT_PAREN { actions->end_list(last()); }
        ( { actions->begin_constant_tail(); } constantTail { actions->constant_operand(); } )? )
    ;

pairSecond
    : ( ( IDENTIFIER | MNEMONIC ) { actions->name(last()); } | UNDERSCORE { actions->sink(last()); } ) { actions->end_pair(last()); }
    ;

// The contents of [ ].
address
    : ( ( IDENTIFIER | MNEMONIC ) { actions->address_name(last()); } ( DOTTED { actions->selector(last()); } )*
        ( LEFT_PAREN INTEGER { actions->queue_address(last()); } RIGHT_PAREN // [dac.deq.data(3)]
        | PLUS ( INTEGER { actions->address_offset(last()); } ( { actions->begin_offset_tail(); } constantTail { actions->address_constant(); } )?
               | ( IDENTIFIER | MNEMONIC ) { actions->second_base(last()); } ( PLUS constant { actions->address_constant(); } )?
               | notInteger { actions->address_constant(); } ) )?
      | constant { actions->immediate_base(); } )
      ( COMMA operand )*
    ;

// The contents of name[ ].
index
    : ( IDENTIFIER | MNEMONIC ) { actions->name(last()); } ( DOTTED { actions->selector(last()); } )*
      ( PLUS constant { actions->address_constant(); } )?
    | constant { actions->address_constant(); }
    ;

// ---------------------------------------------------------------- constant expressions: terms and operators in the
// order of the text; ReaderActions handles precedence.

constant
    : { actions->begin_constant(); } constantTerm constantTail?
    ;

notInteger
    : { actions->begin_constant(); }
      ( FLOAT { actions->constant_decimal(last()); }
      | WARP_SIZE { actions->constant_warp_size(last()); } | constantPrefix | parenthesisedConstant )
      constantTail?
    ;

constantTail
    : ( ( PLUS | MINUS | TIMES | DIVIDE | PERCENT | PIPE | AMPERSAND | CARET | LOGICAL_AND | LOGICAL_OR | SHIFT_LEFT
        | SHIFT_RIGHT | LESS | GREATER | LESS_EQUAL | GREATER_EQUAL | EQUAL_EQUAL | NOT_EQUAL | QUESTION | COLON )
        { actions->constant_operator(last()); } constantTerm )+
    ;

constantTerm
    : INTEGER { actions->constant_integer(last()); }
    | FLOAT { actions->constant_decimal(last()); }
    | WARP_SIZE { actions->constant_warp_size(last()); }
    | constantPrefix
    | parenthesisedConstant
    ;

constantPrefix
    : ( PLUS | MINUS | EXCLAMATION | TILDE ) { actions->constant_prefix(last()); } constantTerm
    ;

parenthesisedConstant
    : LEFT_PAREN { actions->constant_open(last()); }
      ( DOTTED { actions->constant_cast(last()); } RIGHT_PAREN constantTerm
      | constantTerm constantTail? RIGHT_PAREN { actions->constant_close(); } )
    ;

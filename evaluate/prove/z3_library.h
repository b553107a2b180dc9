// Z3's C++ interface over functions that are loaded when a proof first needs them: at program start, the library would
// take as long to load as a small kernel takes to read.
//
// z3++.h calls the C functions by their plain names inside namespace z3, where the pointers declared here come first.
// Include this header instead of z3++.h; a function that is missing from the list is a link error.
#pragma once

#include <z3.h>

// clang-format off
#define PTXREWRITE_Z3_FUNCTIONS(FUNCTION)                                                                              \
  FUNCTION(Z3_ast_to_string) FUNCTION(Z3_ast_vector_dec_ref) FUNCTION(Z3_ast_vector_get)                               \
  FUNCTION(Z3_ast_vector_inc_ref) FUNCTION(Z3_ast_vector_push) FUNCTION(Z3_ast_vector_size) FUNCTION(Z3_dec_ref)       \
  FUNCTION(Z3_del_config) FUNCTION(Z3_del_context) FUNCTION(Z3_get_ast_kind) FUNCTION(Z3_get_bv_sort_size)             \
  FUNCTION(Z3_get_error_code) FUNCTION(Z3_get_error_msg) FUNCTION(Z3_get_numeral_uint64) FUNCTION(Z3_get_sort)         \
  FUNCTION(Z3_get_sort_kind) FUNCTION(Z3_inc_ref) FUNCTION(Z3_is_re_sort) FUNCTION(Z3_is_seq_sort)                     \
  FUNCTION(Z3_mk_add) FUNCTION(Z3_mk_and) FUNCTION(Z3_mk_app) FUNCTION(Z3_mk_ast_vector) FUNCTION(Z3_mk_bv_sort)       \
  FUNCTION(Z3_mk_bvadd) FUNCTION(Z3_mk_bvand) FUNCTION(Z3_mk_bvashr) FUNCTION(Z3_mk_bvlshr)                            \
  FUNCTION(Z3_mk_bvmul) FUNCTION(Z3_mk_bvneg) FUNCTION(Z3_mk_bvnot) FUNCTION(Z3_mk_bvor) FUNCTION(Z3_mk_bvsge)         \
  FUNCTION(Z3_mk_bvsgt) FUNCTION(Z3_mk_bvshl) FUNCTION(Z3_mk_bvsle) FUNCTION(Z3_mk_bvslt) FUNCTION(Z3_mk_bvsub)        \
  FUNCTION(Z3_mk_bvuge) FUNCTION(Z3_mk_bvugt) FUNCTION(Z3_mk_bvule) FUNCTION(Z3_mk_bvult) FUNCTION(Z3_mk_bvxor)        \
  FUNCTION(Z3_mk_concat) FUNCTION(Z3_mk_config) FUNCTION(Z3_mk_const) FUNCTION(Z3_mk_context_rc)                       \
  FUNCTION(Z3_mk_distinct) FUNCTION(Z3_mk_eq) FUNCTION(Z3_mk_extract) FUNCTION(Z3_mk_fpa_add)                          \
  FUNCTION(Z3_mk_fpa_geq) FUNCTION(Z3_mk_fpa_gt) FUNCTION(Z3_mk_fpa_leq) FUNCTION(Z3_mk_fpa_lt)                        \
  FUNCTION(Z3_mk_fpa_mul) FUNCTION(Z3_mk_fpa_neg) FUNCTION(Z3_mk_fpa_rna) FUNCTION(Z3_mk_fpa_rne)                      \
  FUNCTION(Z3_mk_fpa_rtn) FUNCTION(Z3_mk_fpa_rtp) FUNCTION(Z3_mk_fpa_rtz) FUNCTION(Z3_mk_fpa_sub)                      \
  FUNCTION(Z3_mk_func_decl) FUNCTION(Z3_mk_ge) FUNCTION(Z3_mk_gt) FUNCTION(Z3_mk_implies) FUNCTION(Z3_mk_int)          \
  FUNCTION(Z3_mk_ite) FUNCTION(Z3_mk_le) FUNCTION(Z3_mk_lt) FUNCTION(Z3_mk_mul) FUNCTION(Z3_mk_or)                     \
  FUNCTION(Z3_mk_params) FUNCTION(Z3_mk_re_concat) FUNCTION(Z3_mk_re_union) FUNCTION(Z3_mk_seq_concat)                 \
  FUNCTION(Z3_mk_sign_ext) FUNCTION(Z3_mk_solver_for_logic) FUNCTION(Z3_mk_string_symbol) FUNCTION(Z3_mk_sub)          \
  FUNCTION(Z3_mk_unary_minus) FUNCTION(Z3_mk_unsigned_int) FUNCTION(Z3_mk_unsigned_int64) FUNCTION(Z3_mk_xor)          \
  FUNCTION(Z3_mk_zero_ext) FUNCTION(Z3_model_dec_ref) FUNCTION(Z3_model_eval) FUNCTION(Z3_model_inc_ref)               \
  FUNCTION(Z3_params_dec_ref) FUNCTION(Z3_params_inc_ref) FUNCTION(Z3_params_set_uint)                                 \
  FUNCTION(Z3_set_ast_print_mode) FUNCTION(Z3_set_error_handler) FUNCTION(Z3_simplify)                                 \
  FUNCTION(Z3_solver_assert) FUNCTION(Z3_solver_check) FUNCTION(Z3_solver_dec_ref) FUNCTION(Z3_solver_get_model)       \
  FUNCTION(Z3_solver_get_reason_unknown) FUNCTION(Z3_solver_get_statistics) FUNCTION(Z3_solver_inc_ref)                \
  FUNCTION(Z3_solver_set_params) FUNCTION(Z3_stats_dec_ref) FUNCTION(Z3_stats_get_key)                                 \
  FUNCTION(Z3_stats_get_uint_value) FUNCTION(Z3_stats_inc_ref) FUNCTION(Z3_stats_is_uint)                              \
  FUNCTION(Z3_stats_size)
// clang-format on

namespace z3 {
#define FUNCTION(name) inline decltype(&::name) name = nullptr;
PTXREWRITE_Z3_FUNCTIONS(FUNCTION)
#undef FUNCTION
} // namespace z3

#include <z3++.h>

namespace ptxrewrite::prove {

// Returns false if the library or one of the functions is missing; no object of z3 may be made then.
bool load_z3();

} // namespace ptxrewrite::prove

// Families of operations that are parts of a larger family, which adds their rows.
#pragma once

namespace ptxrewrite::emulator {

class OperationTable;

void add_packed_integers(OperationTable& table);       // of arithmetic.cpp
void add_mixed_packed(OperationTable& table);          // of half_arithmetic.cpp
void add_narrow_float_products(OperationTable& table); // of half_arithmetic.cpp
void add_narrow_conversions(OperationTable& table);    // of convert_float.cpp

} // namespace ptxrewrite::emulator

// JSON as the same tree with positions that TOML is read into (document.h), and a check against a JSON schema, so that
// what is wrong with a file is told where it stands.
#pragma once

#include "support/text/document.h"

namespace ptxrewrite {

// Reads JSON; on errors nothing, and diagnostics say why.
std::optional<Node> read_json(const SourceFile& source, Diagnostics& diagnostics);

// Checks `value` against a schema of these words: type, enum, const, properties, required, additionalProperties
// (false), items, minItems, minLength, minimum, $ref (to #/$defs/NAME).
void check_schema(const Node& value, const Node& schema, Diagnostics& diagnostics);

} // namespace ptxrewrite

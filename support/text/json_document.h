// Reads JSON into the same tree with positions as TOML (document.h), and checks it against a JSON schema, so that
// errors are reported with their position.
#pragma once

#include "support/text/document.h"

namespace ptxrewrite {

// Reads JSON. Returns nullopt on errors, which are in the diagnostics.
std::optional<Node> read_json(const SourceFile& source, Diagnostics& diagnostics);

// Checks `value` against a schema with these keywords: type, enum, const, properties, required, additionalProperties
// (false), items, minItems, minLength, minimum, $ref (to #/$defs/NAME).
void check_schema(const Node& value, const Node& schema, Diagnostics& diagnostics);

} // namespace ptxrewrite

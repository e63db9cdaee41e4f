// Forward declarations of CLI11 for headers: the compiler needs seconds to parse the library itself.
#pragma once

namespace CLI {
class App;
class Option;
}  // namespace CLI

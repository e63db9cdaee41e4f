// CLI11's names for headers: the library itself takes seconds to parse.
#pragma once

namespace CLI {
class App;
class Option;
}  // namespace CLI

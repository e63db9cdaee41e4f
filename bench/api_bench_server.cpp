// `latchkey serve` without the command line, to measure the API: `api_bench_server DATA_DIR PORT [threads]`; ends at a
// signal.
#include <cstdlib>
#include <iostream>

#include "server/serve.hpp"

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  latchkey::ServeSettings settings;
  settings.data_dir = argv[1];
  settings.listen = std::string("127.0.0.1:") + argv[2];
  if (argc > 3) settings.threads = static_cast<unsigned>(std::atoi(argv[3]));
  return latchkey::serve(settings, std::cout);
}

#include "cli/program.hpp"

int main(int argc, char** argv) {
  return ponder::cli::run(argc, argv);
}

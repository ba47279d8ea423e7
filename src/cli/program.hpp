// `ponder <verb>`: parses the command line, runs one verb, turns an Error into one line on stderr.
#pragma once

namespace ponder::cli {

// Exit status: 0, 1 for an error, 2 for wrong usage.
int run(int argc, char** argv);

}  // namespace ponder::cli

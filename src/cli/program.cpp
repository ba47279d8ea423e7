#include "cli/program.hpp"

#include <cstdio>
#include <exception>
#include <new>
#include <string>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/error.hpp"
#include "base/mapped_file.hpp"
#include "cli/commands.hpp"
#include "cli/io.hpp"

namespace ponder::cli {
namespace {

constexpr int kFailure = 1;
constexpr int kWrongUsage = 2;

int report(std::string_view message, int status) {
  complain("ponder: " + printable(message, 4000));
  return status;
}

// CLI11 prints help itself and throws for everything else.
int usage_error(const CLI::App& app, const CLI::ParseError& error) {
  if (error.get_exit_code() == 0) return app.exit(error);
  return report(fmt::format("{} (see ponder --help)", error.what()), kWrongUsage);
}

}  // namespace

int run(int argc, char** argv) {
  install_mapping_fault_handler();
  CLI::App app("Native engine for language models that decide how much to think.", "ponder");
  app.set_version_flag("--version", PONDER_VERSION);
  app.require_subcommand(1);
  app.get_formatter()->column_width(36);
  Commands commands(app);
  try {
    app.parse(argc, argv);
    const int status = commands.run();
    flush();
    return status;
  } catch (const CLI::ParseError& error) {
    return usage_error(app, error);
  } catch (const Error& error) {
    return report(error.what(), error.kind() == ErrorKind::usage ? kWrongUsage : kFailure);
  } catch (const std::bad_alloc&) {
    return report("out of memory", kFailure);
  } catch (const std::exception& error) {
    return report(fmt::format("internal error: {}", error.what()), kFailure);
  }
}

}  // namespace ponder::cli

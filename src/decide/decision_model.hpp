// A decision model from its export folder: everything `ponder decide` and the server need to answer.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/memory_budget.hpp"
#include "decide/answerer.hpp"
#include "decide/encoder.hpp"
#include "engine/engine.hpp"
#include "engine/runtime.hpp"
#include "formats/checkpoint.hpp"
#include "models/hybrid/config.hpp"
#include "models/hybrid/model.hpp"
#include "models/hybrid/pointer_head.hpp"

namespace ponder::decide {

// export.json of an export folder.
struct ExportInfo {
  int head_dim = 0;  // 0: not given
  double temperature = 1.0;
  std::string format = "markers-v3-plainchains";
  std::string precision;  // "bf16", "fp8" or empty

  // Throws Error(bad_file) naming the field, Error(unsupported) for another prompt format.
  static ExportInfo load(const std::filesystem::path& file);
};

struct LoadOptions {
  hybrid::TypeChoice type;            // how weights are held; default: as stored
  ops::KvType kv = ops::KvType::f32;  // how keys and values are held
  engine::RuntimeOptions runtime;
  AnswerLimits limits;
  // The drafter's file; default: the folder's, when it has one. Empty: think without drafts.
  std::optional<std::filesystem::path> drafter;
  hybrid::DraftMemory draft_memory;
  int step_rows = 512;         // most rows of one step: the size of a prompt chunk
  MemoryBudgetSources memory;  // where the machine's memory is read from; tests make it smaller
};

// A folder's backbone alone, for `logits` and `info`: configuration and open files, nothing computed yet.
struct BackboneFiles {
  std::filesystem::path folder;
  hybrid::Config config;
  formats::Checkpoint checkpoint;

  // Throws Error(bad_file) naming what is missing or wrong.
  static BackboneFiles open(const std::filesystem::path& folder);
};

// The drafter that options and folder come to; nothing when thinking goes without. Throws Error(bad_file)
// when the folder has several.
std::optional<std::filesystem::path> choose_drafter(const std::filesystem::path& folder,
                                                    const LoadOptions& options);

// Loads the weights, with `drafter` where there is one, and builds the engine. Throws Error(no_memory) before
// any work when the machine cannot hold weights, work space and the states of `sequences` sequences of
// `tokens` tokens.
std::unique_ptr<engine::Engine> load_backbone(const BackboneFiles& files, const LoadOptions& options,
                                              int sequences, std::int64_t tokens,
                                              const std::optional<std::filesystem::path>& drafter = {});

class DecisionModel {
 public:
  static std::unique_ptr<DecisionModel> load(const std::filesystem::path& folder, const LoadOptions& options);

  const std::string& name() const noexcept { return name_; }  // the folder's
  const ExportInfo& info() const noexcept { return info_; }
  const Encoder& encoder() const noexcept { return encoder_; }
  engine::Engine& engine() noexcept { return *engine_; }
  Answerer& answerer() noexcept { return *answerer_; }
  // One line: the backend, its threads and why.
  std::string describe() const;
  // Throws Error(bad_file) when a weight file changed under the mapping; called before a request runs.
  void check_unchanged() const { files_.checkpoint.check_unchanged(); }

 private:
  DecisionModel(BackboneFiles files, ExportInfo info, hybrid::PointerHead head, Encoder encoder);

  std::string name_;
  BackboneFiles files_;
  ExportInfo info_;
  hybrid::PointerHead head_;
  Encoder encoder_;
  std::unique_ptr<engine::Engine> engine_;
  std::unique_ptr<Answerer> answerer_;
};

}  // namespace ponder::decide

// A state dict saved by torch.save (zip format), read without running pickle code.
//
// A pickle is a program; this reader runs none of it. It knows the few opcodes that build a flat dict of
// tensors and four globals as plain tags (collections.OrderedDict, torch._utils._rebuild_tensor_v2 and
// _rebuild_parameter, the torch.*Storage types of f64, f32, f16 and bf16); every other opcode or global is an
// error that names it.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

#include "formats/checkpoint.hpp"

namespace ponder::formats {

// Parses a whole file already in memory; `file` is only for messages. Tensors come in dict order, their bytes
// point into the archive. Throws bad_file for a damaged archive or pickle (checksums of what is used are
// compared), unsupported for well-formed contents that are not a flat dict of contiguous float tensors.
std::vector<TensorView> parse_torch_state_dict(std::span<const std::byte> bytes, std::string_view file);

// The same, mapping the file.
Checkpoint load_torch_state_dict(const std::filesystem::path& path);

}  // namespace ponder::formats

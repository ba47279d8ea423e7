// Which files make up a model folder: the index and its shards, one file, or loose files.
#include <algorithm>
#include <map>
#include <memory>
#include <system_error>
#include <utility>

#include "base/error.hpp"
#include "formats/safetensors.hpp"
#include "formats/strict_json.hpp"

namespace ponder::formats {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view index_name = "model.safetensors.index.json";
constexpr std::size_t max_shards = 10'000;
constexpr std::size_t max_index_depth = 64;

struct Index {
  std::vector<std::pair<std::string, std::uint32_t>> tensors;  // name -> index into shards; sorted by name
  std::vector<std::string> shards;                             // sorted
};

// "weight_map" is read, everything else (metadata) is passed over.
class IndexReader final : public StrictSax {
 public:
  explicit IndexReader(std::string_view file) : StrictSax(file, "the index") {}

  bool null() override { return in_map_ ? StrictSax::null() : true; }
  bool boolean(bool value) override { return in_map_ ? StrictSax::boolean(value) : true; }
  bool number_integer(number_integer_t v) override { return in_map_ ? StrictSax::number_integer(v) : true; }
  bool number_unsigned(number_unsigned_t v) override {
    return in_map_ ? StrictSax::number_unsigned(v) : true;
  }
  bool number_float(number_float_t v, const string_t& text) override {
    return in_map_ ? StrictSax::number_float(v, text) : true;
  }

  bool string(string_t& value) override {
    if (!in_map_) return true;
    if (depth_ != 2) return StrictSax::string(value);
    check_shard_name(value);
    const auto [shard, added] =
        shards_.try_emplace(std::move(value), static_cast<std::uint32_t>(shards_.size()));
    if (added && shards_.size() > max_shards) {
      fail(ErrorKind::too_large, "{}: the index names more than {} shards", file(), max_shards);
    }
    tensors_.emplace_back(std::move(name_), shard->second);
    return true;
  }

  bool key(string_t& name) override {
    if (in_map_) {
      name_ = std::move(name);
    } else if (depth_ == 1) {
      in_map_ = name == "weight_map";
      if (in_map_ && std::exchange(have_map_, true)) {
        fail(ErrorKind::bad_file, "{}: weight_map occurs twice", file());
      }
    }
    return true;
  }

  bool start_object(std::size_t size) override {
    if (in_map_ && depth_ != 1) return StrictSax::start_object(size);
    return enter();
  }
  bool start_array(std::size_t size) override { return in_map_ ? StrictSax::start_array(size) : enter(); }
  bool end_object() override {
    if (--depth_ == 1) in_map_ = false;
    return true;
  }
  bool end_array() override {
    --depth_;
    return true;
  }

  Index take() {
    if (!have_map_ || tensors_.empty()) {
      fail(ErrorKind::bad_file, "{}: the index has no weight_map that names a tensor", file());
    }
    Index index;
    std::vector<std::uint32_t> place(shards_.size());
    for (const auto& [name, id] : shards_) {  // in sorted order
      place[id] = static_cast<std::uint32_t>(index.shards.size());
      index.shards.push_back(name);
    }
    for (auto& [name, id] : tensors_) id = place[id];
    std::sort(tensors_.begin(), tensors_.end());
    const auto twice = std::adjacent_find(tensors_.begin(), tensors_.end(),
                                          [](const auto& a, const auto& b) { return a.first == b.first; });
    if (twice != tensors_.end()) {
      fail(ErrorKind::bad_file, "{}: tensor '{}' occurs twice in the index", file(), printable(twice->first));
    }
    index.tensors = std::move(tensors_);
    return index;
  }

 private:
  bool enter() {
    if (++depth_ > max_index_depth) {
      fail(ErrorKind::bad_file, "{}: the index is nested deeper than {}", file(), max_index_depth);
    }
    return true;
  }

  // Only a plain name can be looked up in the folder without leaving it.
  void check_shard_name(const std::string& shard) const {
    const bool plain = !shard.empty() && shard != "." && shard != ".." &&
                       shard.find_first_of(std::string_view("/\\\0", 3)) == std::string::npos;
    if (plain) return;
    fail(ErrorKind::bad_file,
         "{}: tensor '{}' is said to be in '{}', expected the name of a file in this folder", file(),
         printable(name_), printable(shard));
  }

  bool unexpected(const std::string& found) override {
    if (depth_ < 2) fail(ErrorKind::bad_file, "{}: weight_map is {}, expected an object", file(), found);
    fail(ErrorKind::bad_file, "{}: weight_map has {} for tensor '{}', expected a file name", file(), found,
         printable(name_));
  }

  std::size_t depth_ = 0;
  bool in_map_ = false;  // inside weight_map's value
  bool have_map_ = false;
  std::string name_;
  std::map<std::string, std::uint32_t> shards_;
  std::vector<std::pair<std::string, std::uint32_t>> tensors_;
};

Index read_index(const fs::path& path) {
  const MappedFile file(path);
  if (file.size() > max_safetensors_header) {
    fail(ErrorKind::too_large, "{}: the index has {} bytes, over the limit of {}",
         printable(file.path(), 4096), file.size(), max_safetensors_header);
  }
  IndexReader reader(file.path());
  parse_strict_json(file.bytes(), file.path(), "the index", reader);
  return reader.take();
}

CheckpointPart open_part(const fs::path& path) {
  auto mapping = std::make_shared<const MappedFile>(path);
  SafetensorsContents contents = parse_safetensors(mapping->bytes(), mapping->path());
  CheckpointPart part;
  part.file = {mapping->path(), "safetensors", mapping->size(), 0, std::move(contents.metadata)};
  part.tensors = std::move(contents.tensors);
  part.mapping = std::move(mapping);
  return part;
}

Checkpoint open_parts(const std::vector<fs::path>& paths) {
  std::vector<CheckpointPart> parts;
  parts.reserve(paths.size());
  for (const fs::path& path : paths) parts.push_back(open_part(path));
  return Checkpoint(std::move(parts));
}

bool is_there(const fs::path& path) {
  std::error_code error;
  return fs::symlink_status(path, error).type() != fs::file_type::not_found;
}

void check_shards_exist(const Index& index, const fs::path& folder, const std::string& shown_index) {
  for (std::uint32_t shard = 0; shard < index.shards.size(); ++shard) {
    if (is_there(folder / index.shards[shard])) continue;
    const auto first = std::find_if(index.tensors.begin(), index.tensors.end(),
                                    [&](const auto& entry) { return entry.second == shard; });
    fail(ErrorKind::bad_file, "{}: shard '{}', which should hold tensor '{}', is missing from the folder",
         shown_index, printable(index.shards[shard]), printable(first->first));
  }
}

// Both directions: a tensor the index promises and does not get, or gets and did not promise, means that
// files of different models were mixed.
void check_index_agrees(const Index& index, const Checkpoint& checkpoint, const std::vector<fs::path>& paths,
                        const std::string& shown_index) {
  for (const auto& [name, shard] : index.tensors) {
    const TensorView* tensor = checkpoint.find(name);
    if (tensor == nullptr) {
      fail(ErrorKind::bad_file, "{}: tensor '{}' is missing from shard '{}'", shown_index, printable(name),
           printable(index.shards[shard]));
    }
    if (tensor->file != paths[shard].string()) {
      fail(ErrorKind::bad_file, "{}: tensor '{}' should be in shard '{}' but is in {}", shown_index,
           printable(name), printable(index.shards[shard]), printable(tensor->file, 4096));
    }
  }
  for (const TensorView& tensor : checkpoint) {
    const auto at = std::lower_bound(index.tensors.begin(), index.tensors.end(), tensor.name,
                                     [](const auto& entry, const auto& name) { return entry.first < name; });
    if (at == index.tensors.end() || at->first != tensor.name) {
      fail(ErrorKind::bad_file, "{}: tensor '{}' is not in {}", printable(tensor.file, 4096),
           printable(tensor.name), shown_index);
    }
  }
}

Checkpoint open_indexed(const fs::path& folder) {
  const fs::path index_path = folder / index_name;
  const Index index = read_index(index_path);
  const std::string shown = printable(index_path.string(), 4096);
  check_shards_exist(index, folder, shown);
  std::vector<fs::path> paths;
  paths.reserve(index.shards.size());
  for (const std::string& shard : index.shards) paths.push_back(folder / shard);
  Checkpoint checkpoint = open_parts(paths);
  check_index_agrees(index, checkpoint, paths, shown);
  return checkpoint;
}

// The *.safetensors files of a folder, by whether their names start with "drafter"; sorted.
std::vector<fs::path> list_files(const fs::path& folder, bool drafters) {
  std::error_code error;
  fs::directory_iterator entries(folder, error);
  std::vector<fs::path> found;
  for (; !error && entries != fs::directory_iterator(); entries.increment(error)) {
    const std::string name = entries->path().filename().string();
    if (name.ends_with(".safetensors") && name.starts_with("drafter") == drafters)
      found.push_back(folder / name);
  }
  if (error) {
    fail(ErrorKind::bad_file, "{}: the folder cannot be read: {}", printable(folder.string(), 4096),
         error.message());
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace

Checkpoint open_safetensors(const fs::path& path) {
  return open_parts({path});
}

Checkpoint open_model_folder(const fs::path& folder) {
  if (is_there(folder / index_name)) return open_indexed(folder);
  if (is_there(folder / "model.safetensors")) return open_parts({folder / "model.safetensors"});
  const std::vector<fs::path> loose = list_files(folder, false);
  if (loose.empty()) {
    fail(ErrorKind::bad_file,
         "{}: the folder holds no weights: no {}, no model.safetensors, no other *.safetensors",
         printable(folder.string(), 4096), index_name);
  }
  return open_parts(loose);
}

std::vector<fs::path> find_drafters(const fs::path& folder) {
  return list_files(folder, true);
}

}  // namespace ponder::formats

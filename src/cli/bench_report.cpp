#include "cli/bench_report.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "base/format_bytes.hpp"

namespace ponder::cli {
namespace {

using decide::Array;
using decide::Object;
using decide::Value;
using decide::whole;
using engine::Arithmetic;
using engine::Figure;
using engine::Spread;

std::string_view name_of(Arithmetic arithmetic) {
  constexpr std::string_view names[] = {"f32", "bf16", "int8"};
  return names[static_cast<std::size_t>(arithmetic)];
}

std::string_view name_of(ops::ActivationType type) {
  switch (type) {
    case ops::ActivationType::f32:
      return "f32";
    case ops::ActivationType::bf16:
      return "bf16";
    default:
      return "native";
  }
}

double number(std::uint64_t n) {
  return static_cast<double>(n);
}

double share_of_reads(const Figure& f) {
  return number(f.work.bytes()) / f.seconds.median / f.peaks.read_bytes;
}
double share_of_arithmetic(const Figure& f, Arithmetic arithmetic) {
  return 2 * number(f.work.multiply_adds) / f.seconds.median / peak_of(arithmetic, f.peaks);
}
// Tokens a second: the largest goes with the least time.
Spread rate(const Figure& f) {
  const double n = f.rows;
  return {n / f.seconds.median, n / f.seconds.max, n / f.seconds.min};
}

// The least time an operation could take: its bytes or its products, whichever takes longer.
double limit_seconds(const ops::OpRecord& op, ops::ActivationType activations, const cpu::Peaks& peaks) {
  const bool product =
      op.op == ops::Op::linear || op.op == ops::Op::gated_linear || op.op == ops::Op::masked_argmax;
  const Arithmetic arithmetic = product ? engine::arithmetic_of(op.type, activations) : Arithmetic::f32;
  return std::max(number(op.bytes()) / peaks.read_bytes,
                  2 * number(op.multiply_adds) / peak_of(arithmetic, peaks));
}

std::vector<ops::OpRecord> by_time(std::vector<ops::OpRecord> ops) {
  std::stable_sort(ops.begin(), ops.end(),
                   [](const ops::OpRecord& a, const ops::OpRecord& b) { return a.seconds > b.seconds; });
  return ops;
}

// Seconds of a profile that passed between operations.
double between(const engine::Profile& profile) {
  double inside = 0;
  for (const ops::OpRecord& op : profile.ops) inside += op.seconds;
  return std::max(0.0, profile.seconds - inside);
}

// ---- text ------------------------------------------------------------------------------------------------

std::string percent(double share) {
  return fmt::format("{:.0f} %", 100 * share);
}

std::string op_table(const Figure& f, ops::ActivationType activations) {
  const engine::Profile& p = f.profile;
  const double steps = p.steps;
  std::string out = fmt::format("  {:<48} {:>6} {:>10} {:>7} {:>9} {:>8} {:>8}\n", "operation", "calls", "ms",
                                "time", "MB", "Gmac", "limit");
  for (const ops::OpRecord& op : by_time(p.ops)) {
    out += fmt::format("  {:<48} {:>6} {:>10.3f} {:>7} {:>9.2f} {:>8.3f} {:>8}\n", op.label(),
                       op.calls / static_cast<std::uint64_t>(p.steps), op.seconds / steps * 1e3,
                       percent(op.seconds / p.seconds), number(op.bytes()) / steps / 1e6,
                       number(op.multiply_adds) / steps / 1e9,
                       percent(limit_seconds(op, activations, f.peaks) / op.seconds));
  }
  return out + fmt::format("  {:<48} {:>6} {:>10.3f} {:>7}\n", "(between operations)", "",
                           between(p) / steps * 1e3, percent(between(p) / p.seconds));
}

std::string prompt_table(const BenchReport& r) {
  if (r.prompts.empty()) return {};
  std::string out = fmt::format("\n{:<8} {:>10} {:>19} {:>10} {:>10} {:>10}\n", "prompt", "tok/s",
                                "min - max", "ms", fmt::format("of {}", name_of(r.arithmetic)), "of reads");
  for (const Figure& f : r.prompts) {
    const Spread tokens = rate(f);
    out += fmt::format("{:<8} {:>10.1f} {:>19} {:>10.1f} {:>10} {:>10}\n", f.rows, tokens.median,
                       fmt::format("{:.1f} - {:.1f}", tokens.min, tokens.max), f.seconds.median * 1e3,
                       percent(share_of_arithmetic(f, r.arithmetic)), percent(share_of_reads(f)));
  }
  return out;
}

std::string decode_table(const BenchReport& r) {
  if (r.decodes.empty()) return {};
  std::string out = fmt::format("\n{:<8} {:>10} {:>19} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10}\n", "rows",
                                "tok/s", "min - max", "per row", "ms", "steps", "MB", "of reads",
                                fmt::format("of {}", name_of(r.arithmetic)));
  for (const Figure& f : r.decodes) {
    const Spread tokens = rate(f);
    const Figure& one = r.decodes.front();
    out += fmt::format("{:<8} {:>10.2f} {:>19} {:>10.2f} {:>10.2f} {:>10} {:>10.1f} {:>10} {:>10}\n", f.rows,
                       tokens.median, fmt::format("{:.2f} - {:.2f}", tokens.min, tokens.max),
                       tokens.median / f.rows, f.seconds.median * 1e3,
                       one.rows == 1 ? fmt::format("{:.2f}", f.seconds.median / one.seconds.median) : "-",
                       number(f.work.bytes()) / 1e6, percent(share_of_reads(f)),
                       percent(share_of_arithmetic(f, r.arithmetic)));
  }
  return out;
}

// ---- JSON ------------------------------------------------------------------------------------------------

Value json_of(const engine::Work& w) {
  Object o;
  o.append("weights", whole(w.weight_bytes));
  o.append("keys_values", whole(w.kv_bytes));
  o.append("states", whole(w.state_bytes));
  o.append("total", whole(w.bytes()));
  return o;
}

Value json_of(const cpu::Peaks& p) {
  Object o;
  o.append("read_bytes_per_s", p.read_bytes);
  o.append("int8_ops_per_s", p.int8_ops);
  o.append("bf16_ops_per_s", p.bf16_ops);
  o.append("f32_ops_per_s", p.f32_ops);
  return o;
}

Value ops_json(const Figure& f, ops::ActivationType activations) {
  const engine::Profile& p = f.profile;
  Array list;
  for (const ops::OpRecord& op : by_time(p.ops)) {
    Object o;
    o.append("op", op.label());
    o.append("calls", whole(op.calls));
    o.append("rows", whole(op.rows));
    o.append("seconds", op.seconds);
    o.append("share_of_time", op.seconds / p.seconds);
    o.append("bytes", whole(op.bytes()));
    o.append("multiply_adds", whole(op.multiply_adds));
    o.append("share_of_limit", limit_seconds(op, activations, f.peaks) / op.seconds);
    list.emplace_back(std::move(o));
  }
  Object out;
  out.append("steps", p.steps);
  out.append("seconds", p.seconds);
  out.append("between_seconds", between(p));
  out.append("list", std::move(list));
  return out;
}

Object figure_json(const Figure& f, const BenchReport& r, const char* rows_name) {
  Object o;
  o.append(rows_name, f.rows);
  o.append("tokens_per_s", spread_json(rate(f)));
  o.append("seconds", spread_json(f.seconds));
  o.append("bytes", json_of(f.work));
  o.append("multiply_adds", whole(f.work.multiply_adds));
  o.append("share_of_reads", share_of_reads(f));
  o.append("share_of_arithmetic", share_of_arithmetic(f, r.arithmetic));
  o.append("yardsticks", json_of(f.peaks));
  return o;
}

// Every matrix of the model, each object once: a tied head is its embedding.
template <class Visit>
void each_weight(const hybrid::Weights& w, Visit&& visit) {
  visit(*w.embedding);
  if (w.head != w.embedding) visit(*w.head);
  for (const hybrid::LayerWeights& layer : w.layers) {
    const hybrid::DeltaWeights& d = layer.delta;
    const hybrid::AttentionWeights& a = layer.attention;
    for (const hybrid::Linear* l :
         {&d.qkv, &d.z, &d.a, &d.b, &d.out, &a.q, &a.k, &a.v, &a.o, &layer.gate, &layer.up, &layer.down}) {
      if (l->weight != nullptr) visit(*l->weight);
    }
  }
}

}  // namespace

void BenchReport::describe(const hybrid::HybridModel& hybrid_model) {
  std::map<ops::WeightType, std::uint64_t> by_type;
  each_weight(hybrid_model.weights(), [&](const ops::Weight& w) {
    const std::uint64_t elements =
        static_cast<std::uint64_t>(w.rows()) * static_cast<std::uint64_t>(w.cols());
    parameters += elements;
    matrix_bytes += w.bytes();
    by_type[w.type()] += elements;
  });
  const auto most = std::max_element(by_type.begin(), by_type.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  weight_type = ops::weight_type_name(most->first);
  arithmetic = engine::arithmetic_of(most->first, activations);
  layers = hybrid_model.config().num_hidden_layers;
  hidden = hybrid_model.config().hidden_size;
  vocabulary = hybrid_model.config().vocab_size;
}

std::string BenchReport::text() const {
  std::string out = fmt::format(
      "{}: {} layers, hidden {}, vocabulary {}; {} million weights in {}, {} ({:.2f} bits each); keys and "
      "values in {}\n",
      model, layers, hidden, vocabulary,
      fmt::format("{:.{}f}", number(parameters) / 1e6, parameters < 10'000'000 ? 2 : 0),
      format_bytes(matrix_bytes), weight_type, 8 * number(matrix_bytes) / number(parameters), kv);
  out += fmt::format("machine  reads {:.1f} GB/s, int8 {:.0f} GOPS ({}), bf16 {:.0f} ({}), f32 {:.0f} ({})\n",
                     best.read_bytes / 1e9, best.int8_ops / 1e9, int8_instruction, best.bf16_ops / 1e9,
                     bf16_instruction, best.f32_ops / 1e9, f32_instruction);
  out +=
      fmt::format("         lowest of its rounds: reads {:.1f} GB/s, int8 {:.0f}, bf16 {:.0f}, f32 {:.0f}\n",
                  worst.read_bytes / 1e9, worst.int8_ops / 1e9, worst.bf16_ops / 1e9, worst.f32_ops / 1e9);
  out += prompt_table(*this) + decode_table(*this) + thinking.text();
  if (!ops) return out;
  if (!prompts.empty()) {
    out += fmt::format("\na prompt of {} tokens\n{}", prompts.back().rows,
                       op_table(prompts.back(), activations));
  }
  for (const Figure& f : decodes) {
    if (&f != &decodes.front() && &f != &decodes.back()) continue;
    out += fmt::format("\na step of {} row{}\n{}", f.rows, f.rows == 1 ? "" : "s", op_table(f, activations));
  }
  return out;
}

Value BenchReport::json() const {
  Object about;
  about.append("name", model);
  about.append("layers", layers);
  about.append("hidden_size", hidden);
  about.append("vocab_size", vocabulary);
  about.append("parameters", whole(parameters));
  about.append("matrix_bytes", whole(matrix_bytes));
  about.append("type", weight_type);
  about.append("arithmetic", name_of(arithmetic));
  Object settings;
  settings.append("threads", threads);
  settings.append("activations", name_of(activations));
  settings.append("kv", kv);
  settings.append("step_rows", step_rows);
  settings.append("context", context);
  settings.append("repeat", repeat);
  settings.append("steps_per_sample", engine::Benchmark::kSampleSteps);
  Object instructions;
  instructions.append("int8", int8_instruction);
  instructions.append("bf16", bf16_instruction);
  instructions.append("f32", f32_instruction);
  Object yardsticks;
  yardsticks.append("best", json_of(best));
  yardsticks.append("lowest", json_of(worst));
  yardsticks.append("instructions", std::move(instructions));
  Array prompt_list, decode_list;
  for (const Figure& f : prompts) {
    Object o = figure_json(f, *this, "tokens");
    if (ops) o.append("ops", ops_json(f, activations));
    prompt_list.emplace_back(std::move(o));
  }
  for (const Figure& f : decodes) {
    Object o = figure_json(f, *this, "rows");
    const bool from_one = decodes.front().rows == 1;
    o.append("tokens_per_s_per_row", rate(f).median / f.rows);
    o.append("one_row_steps", from_one ? Value(f.seconds.median / decodes.front().seconds.median) : Value());
    if (ops) o.append("ops", ops_json(f, activations));
    decode_list.emplace_back(std::move(o));
  }
  Object out;
  out.append("backend", backend);
  out.append("model", std::move(about));
  out.append("settings", std::move(settings));
  out.append("yardsticks", std::move(yardsticks));
  out.append("prompt", std::move(prompt_list));
  out.append("decode", std::move(decode_list));
  if (!thinking.figures.empty()) out.append("think", thinking.json());
  return out;
}

}  // namespace ponder::cli

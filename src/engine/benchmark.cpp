#include "engine/benchmark.hpp"

#include <algorithm>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/random.hpp"

namespace ponder::engine {
namespace {

constexpr int kFirstRow[] = {0};

void check_choice(std::int32_t id) {
  if (id < 0) fail(ErrorKind::internal, "the model's logits are not numbers: there is nothing to measure");
}

}  // namespace

Arithmetic arithmetic_of(ops::WeightType weights, ops::ActivationType activations) {
  if (activations == ops::ActivationType::native && ops::is_quantized(weights)) return Arithmetic::int8;
  if (activations != ops::ActivationType::f32 && weights == ops::WeightType::bf16) return Arithmetic::bf16;
  return Arithmetic::f32;
}

double peak_of(Arithmetic arithmetic, const cpu::Peaks& peaks) {
  switch (arithmetic) {
    case Arithmetic::int8:
      return peaks.int8_ops;
    case Arithmetic::bf16:
      return peaks.bf16_ops;
    default:
      return peaks.f32_ops;
  }
}

Spread Spread::of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  const double median = values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
  return {median, values.front(), values.back()};
}

Work Work::of(const std::vector<ops::OpRecord>& ops) {
  Work sum;
  for (const ops::OpRecord& op : ops) {
    sum.weight_bytes += op.weight_bytes;
    sum.kv_bytes += op.kv_bytes;
    sum.state_bytes += op.state_bytes;
    sum.multiply_adds += op.multiply_adds;
  }
  return sum;
}

Benchmark::Benchmark(Engine& engine, ops::ProfiledBackend& profiled, cpu::PeakMeter& meter)
    : engine_(engine), profiled_(profiled), meter_(meter) {
  last_ = best_ = worst_ = meter_.measure();
}

// Another round of the yardsticks; gives the better of it and the one before.
cpu::Peaks Benchmark::measure_machine() {
  const cpu::Peaks now = meter_.measure();
  const cpu::Peaks around = better(last_, now);
  best_ = better(best_, now);
  worst_ = {std::min(worst_.read_bytes, now.read_bytes), std::min(worst_.int8_ops, now.int8_ops),
            std::min(worst_.bf16_ops, now.bf16_ops), std::min(worst_.f32_ops, now.f32_ops)};
  last_ = now;
  return around;
}

std::vector<std::int32_t> Benchmark::random_ids(int count) {
  Random random(++ids_made_);
  std::vector<std::int32_t> ids(static_cast<std::size_t>(count));
  const auto vocabulary = static_cast<std::uint64_t>(engine_.model().vocab_size());
  for (std::int32_t& id : ids) id = static_cast<std::int32_t>(random.below(vocabulary));
  return ids;
}

// Seconds until the token behind the prompt is chosen.
double Benchmark::run_prompt(const std::vector<std::int32_t>& ids) {
  models::Model& model = engine_.model();
  hidden_.resize(static_cast<std::size_t>(model.hidden_size()));
  const Stopwatch watch;
  Sequence sequence = engine_.new_sequence();
  const int last[] = {static_cast<int>(ids.size()) - 1};
  const ExtendJob job{&sequence, ids, last, {hidden_.data(), model.hidden_size()}};
  engine_.extend({&job, 1});
  std::int32_t choice = -1;
  model.argmax({hidden_.data(), model.hidden_size()}, 1, model.vocab_size(), nullptr, &choice);
  const double seconds = watch.elapsed_ms() / 1e3;
  check_choice(choice);
  return seconds;
}

Figure Benchmark::prompt(int tokens, int repeat) {
  const std::vector<std::int32_t> ids = random_ids(tokens);
  if (!warm_) run_prompt(random_ids(std::min(tokens, engine_.model().max_rows())));
  warm_ = true;
  Figure figure;
  figure.rows = tokens;
  profiled_.record(true);
  figure.profile.seconds = run_prompt(ids);
  profiled_.record(false);
  figure.profile.steps = 1;
  figure.profile.ops = profiled_.take();
  figure.work = Work::of(figure.profile.ops);
  std::vector<double> seconds(static_cast<std::size_t>(repeat));
  for (double& s : seconds) s = run_prompt(ids);
  figure.seconds = Spread::of(std::move(seconds));
  figure.peaks = measure_machine();
  return figure;
}

// Contexts are computed apart, not forked from one, so that sequences share no pages.
void Benchmark::grow_contexts(int rows, int context) {
  if (context != context_) contexts_.clear();
  if (context != context_) first_ids_.clear();
  context_ = context;
  const auto have = contexts_.size(), want = static_cast<std::size_t>(rows);
  if (have >= want) return;
  models::Model& model = engine_.model();
  const auto width = static_cast<std::size_t>(model.hidden_size());
  std::vector<std::vector<std::int32_t>> ids;
  for (std::size_t i = have; i < want; ++i) {
    contexts_.push_back(engine_.new_sequence());
    ids.push_back(random_ids(context));
  }
  const int last[] = {context - 1};
  hidden_.resize(width * ids.size());
  jobs_.clear();
  for (std::size_t i = 0; i < ids.size(); ++i) {
    jobs_.push_back({&contexts_[have + i], ids[i], last, {hidden_.data() + i * width, model.hidden_size()}});
  }
  engine_.extend(jobs_);
  first_ids_.resize(want);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    model.argmax({hidden_.data() + i * width, model.hidden_size()}, 1, model.vocab_size(), nullptr,
                 &first_ids_[have + i]);
    check_choice(first_ids_[have + i]);
  }
}

// All sequences one token on: `ids` in, the choices behind them out.
void Benchmark::step(std::vector<Sequence>& sequences, std::vector<std::int32_t>& ids) {
  models::Model& model = engine_.model();
  const std::int64_t width = model.hidden_size();
  hidden_.resize(static_cast<std::size_t>(width) * sequences.size());
  jobs_.clear();
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    jobs_.push_back({&sequences[i],
                     {&ids[i], 1},
                     kFirstRow,
                     {hidden_.data() + static_cast<std::int64_t>(i) * width, width}});
  }
  engine_.extend(jobs_);
  model.argmax({hidden_.data(), width}, static_cast<int>(sequences.size()), model.vocab_size(), nullptr,
               ids.data());
}

// Seconds of one of `steps` steps.
double Benchmark::sample(std::vector<Sequence>& sequences, std::vector<std::int32_t>& ids, int steps) {
  const Stopwatch watch;
  for (int i = 0; i < steps; ++i) step(sequences, ids);
  const double seconds = watch.elapsed_ms() / 1e3 / steps;
  for (const std::int32_t id : ids) check_choice(id);
  return seconds;
}

Figure Benchmark::decode(int rows, int context, int repeat, bool profile) {
  grow_contexts(rows, context);
  std::vector<Sequence> sequences;
  sequences.reserve(static_cast<std::size_t>(rows));
  for (int i = 0; i < rows; ++i) sequences.push_back(contexts_[static_cast<std::size_t>(i)].fork());
  std::vector<std::int32_t> ids(first_ids_.begin(), first_ids_.begin() + rows);
  Figure figure;
  figure.rows = rows;
  // The first step also copies what the forks share with their contexts: counted, not timed.
  profiled_.record(true);
  step(sequences, ids);
  profiled_.record(false);
  figure.work = Work::of(profiled_.take());
  sample(sequences, ids, 2);
  std::vector<double> seconds(static_cast<std::size_t>(repeat));
  for (double& s : seconds) s = sample(sequences, ids, kSampleSteps);
  figure.seconds = Spread::of(std::move(seconds));
  if (profile) {
    profiled_.record(true);
    figure.profile.seconds = kSampleSteps * sample(sequences, ids, kSampleSteps);
    profiled_.record(false);
    figure.profile.steps = kSampleSteps;
    figure.profile.ops = profiled_.take();
  }
  figure.peaks = measure_machine();
  return figure;
}

}  // namespace ponder::engine

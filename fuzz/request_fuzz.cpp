// Bytes of a request all the way to an answer: whatever comes in, the only way out but success is a one-line
// Error, and what goes out can be read again.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <numeric>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "decide/answer.hpp"
#include "decide/json_write.hpp"
#include "decide/packing.hpp"
#include "decide/prompt.hpp"
#include "decide/render.hpp"

namespace {

using namespace ponder;
using namespace ponder::decide;

void require(bool condition) {
  if (!condition) std::abort();
}

// A distribution that depends on the input a little.
std::vector<double> probabilities(std::size_t n, std::size_t seed) {
  std::vector<double> p(n);
  double sum = 0.0;
  for (double& x : p) {
    seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
    x = static_cast<double>(seed >> 40) + 1e-3;
    sum += x;
  }
  for (double& x : p) x /= sum;
  return p;
}

void check_prompt(const Request& request, const Question& question) {
  const Markers markers;
  for (const auto& segments : {user_message(state_text(request.state), question), remainder(question)}) {
    for (const Segment& s : segments) {
      require(!s.text.empty());
      if (s.trusted) continue;
      for (const auto& m :
           {markers.state, markers.question, markers.option, markers.option_end, markers.decide}) {
        require(s.text.find(m) == std::string::npos);
      }
    }
  }
}

void check_request(Value body, std::size_t seed) {
  const Request request = parse_request(std::move(body));
  require(!request.questions.empty());
  std::vector<std::vector<double>> probs;
  std::vector<std::size_t> sizes;
  for (const Question& q : request.questions) {
    const std::size_t n = option_count(q);
    require(n >= 1 && n <= max_options && option_texts(q).size() == n && option_keys(q).size() == n);
    check_prompt(request, q);
    probs.push_back(probabilities(n, seed));
    sizes.push_back(n);
    const std::vector<double> shown = rounded_probabilities(probs.back(), 6);
    require(std::abs(std::accumulate(shown.begin(), shown.end(), 0.0) - 1.0) < 1e-9);
  }
  const AnswerStyle style = AnswerStyle::with_decimals(static_cast<int>(seed % 18));
  const Value all = answers(request.questions, probs, style);
  require(parse_json(answers_json_python(all)) == all);
  const Value whole = reply(request.model.value_or("m"), all, Usage{}, 1.0);
  require(parse_json(write_json(whole, static_cast<int>(seed % 3))) == whole);
  pack_requests(sizes, 1 + seed % 9);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    Value value = parse_json(text);
    require(parse_json(write_json(value)) == value);
    require(parse_json(write_python_json(value)) == value);
    const std::string rendered = sanitize(render(value));
    require(sanitize(rendered) == rendered);
    check_request(std::move(value), size * 31 + (size > 0 ? data[0] : 0));
  } catch (const Error& e) {
    require(e.kind() != ErrorKind::internal);
    require(std::string_view(e.what()).find('\n') == std::string_view::npos);
  }
  return 0;
}

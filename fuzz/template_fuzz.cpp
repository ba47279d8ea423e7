// Any bytes as a template: it renders, or fails with one line. The text behind a NUL is the user's message.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/error.hpp"
#include "text/template.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ponder::text::jinja;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t cut = std::min(input.find('\0'), size);
  const std::string message(input.substr(std::min(cut + 1, size)));
  ChatRequest request;
  request.messages =
      Value::list({Value::dict({{"role", "user"}, {"content", Value::untrusted(message)}}),
                   Value::dict({{"role", "tool"}, {"content", Value::list({1, 2.5, nullptr, true})}})});
  request.add_generation_prompt = true;
  request.special_tokens = {{"s", "Text ü"}, {"bos_token", "<s>"}};
  request.now.emplace();
  try {
    const ChatTemplate chat = ChatTemplate::parse(std::string(input.substr(0, cut)));
    const RenderLimits limits{.max_steps = 200'000, .max_text_bytes = std::size_t{1} << 20};
    std::string joined;
    for (const Segment& segment : chat.render_segments(request, limits)) joined += segment.text;
    if (joined != chat.render(request, limits)) std::abort();
  } catch (const ponder::Error& error) {
    if (std::string_view(error.what()).find('\n') != std::string_view::npos) std::abort();
  }
  return 0;
}

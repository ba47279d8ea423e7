#include "text/template.hpp"

#include "base/error.hpp"
#include "text/template_interp.hpp"

namespace ponder::text::jinja {

struct ChatTemplate::Impl {
  std::string source;
  Tree tree;
};

Value ChatRequest::context() const {
  Value variables = Value::dict({{"messages", messages},
                                 {"tools", tools},
                                 {"documents", documents},
                                 {"add_generation_prompt", add_generation_prompt}});
  if (enable_thinking.has_value()) variables.set("enable_thinking", *enable_thinking);
  if (now.has_value()) variables.set("strftime_now", Value::clock(*now));
  for (const auto& [name, token] : special_tokens) variables.set(name, token);
  for (const auto& [name, value] : extra) variables.set(name, value);
  return variables;
}

ChatTemplate ChatTemplate::parse(std::string source) {
  auto impl = std::make_shared<Impl>();
  impl->tree = parse_template(source);
  impl->source = std::move(source);
  return ChatTemplate(std::move(impl));
}

const std::string& ChatTemplate::source() const {
  return impl_->source;
}

Value ChatTemplate::render_value(const Value& context, const RenderLimits& limits) const {
  if (!context.is_dict())
    fail(ErrorKind::usage, "a template's variables must be a dict, not {}", type_name(context));
  Interp interp(impl_->tree, context, limits);
  try {
    return make_text(interp.run());
  } catch (const RaisedByTemplate&) {
    throw;
  } catch (const Error& error) {
    const std::string_view what = error.what();
    if (what.starts_with("chat template, line ")) throw;
    fail(error.kind(), "chat template, line {}: {}", interp.line(), what);
  }
}

std::string ChatTemplate::render(const Value& context, const RenderLimits& limits) const {
  return render_value(context, limits).as_string();
}

std::string ChatTemplate::render(const ChatRequest& request, const RenderLimits& limits) const {
  return render(request.context(), limits);
}

std::vector<Segment> ChatTemplate::render_segments(const Value& context, const RenderLimits& limits) const {
  return render_value(context, limits).segments();
}

std::vector<Segment> ChatTemplate::render_segments(const ChatRequest& request,
                                                   const RenderLimits& limits) const {
  return render_segments(request.context(), limits);
}

}  // namespace ponder::text::jinja

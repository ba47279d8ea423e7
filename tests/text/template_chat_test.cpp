// Whole chat templates: Qwen3's own against its golden renderings, and templates in the manner of other
// families against jinja2.
#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "text/template_fixtures.hpp"

namespace ponder::text::jinja {
namespace {

using Json = nlohmann::ordered_json;
using testing::HasSubstr;
using testing::StartsWith;

ChatTemplate qwen3() {
  return ChatTemplate::parse(
      read_json("template/qwen3/tokenizer_config.json").at("chat_template").get<std::string>());
}

TEST(ChatTemplate, Qwen3RendersItsGoldenCases) {
  const ChatTemplate chat = qwen3();
  const Json golden = read_json("template/qwen3/chat-golden.json");
  ASSERT_GT(golden.at("cases").size(), 10U);
  for (const Json& one : golden.at("cases")) {
    const Value input = parse_json(one.at("input").dump());
    ChatRequest request;
    request.messages = input.get("messages");
    if (!input.get("tools").is_undefined()) request.tools = input.get("tools");
    request.add_generation_prompt = one.at("input").value("add_generation_prompt", false);
    if (one.at("input").contains("enable_thinking")) {
      request.enable_thinking = one.at("input").at("enable_thinking").get<bool>();
    }
    EXPECT_EQ(chat.render(request), one.at("text").get<std::string>()) << one.at("name");
  }
}

// The decision prompts of the small hybrid models, taken apart and rendered again by the folder's own
// template.
TEST(ChatTemplate, HybridFoldersRenderTheirPrompts) {
  const std::string head = "<|im_start|>user\n", tail = "<|im_end|>\n<|im_start|>assistant\n<think>\n";
  std::size_t rendered = 0;
  for (const std::string folder : {"tiny-a", "tiny-b", "tiny-c", "tiny-d"}) {
    const ChatTemplate chat = ChatTemplate::parse(read_data("hybrid/" + folder + "/chat_template.jinja"));
    const bool trims = chat.source().find("trim") != std::string::npos;
    const Json cases = read_json("hybrid/" + folder + "/cases-text.json");
    for (const Json& one : cases.at("prompts")) {
      const std::string prompt = one.at("prompt_text").get<std::string>();
      ASSERT_THAT(prompt, StartsWith(head));
      ASSERT_TRUE(prompt.ends_with(tail));
      std::string content = prompt.substr(head.size(), prompt.size() - head.size() - tail.size());
      // The last option's line break, which a template that trims drops.
      if (trims) content += "\n";
      ChatRequest request;
      request.messages = Value::list({Value::dict({{"role", "user"}, {"content", content}})});
      request.add_generation_prompt = true;
      request.enable_thinking = true;
      EXPECT_EQ(chat.render(request), prompt);
      ++rendered;
    }
  }
  EXPECT_GE(rendered, 40U);
}

Value request_context(const std::string& name) {
  const Value requests = parse_json(read_data("template/chat/requests.json"));
  for (const Value& request : requests.items()) {
    if (request.get("name").as_string() != name) continue;
    Value context = request.get("context");
    std::tm now{};
    now.tm_year = 124;
    now.tm_mon = 1;
    now.tm_mday = 9;
    context.set("strftime_now", Value::clock(now));
    return context;
  }
  throw std::runtime_error("no request " + name);
}

TEST(ChatTemplate, TemplatesOfManyFamiliesRenderAsJinja2) {
  const Json cases = read_json("template/chat.json");
  ASSERT_GT(cases.size(), 200U);
  for (const Json& one : cases) {
    const std::string file = one.at("file").get<std::string>(),
                      request = one.at("request").get<std::string>();
    const std::string got = outcome(read_data("template/chat/" + file), request_context(request));
    if (one.contains("expected")) {
      EXPECT_EQ(got, one.at("expected").get<std::string>()) << file << ": " << request;
      continue;
    }
    const std::string expected = one.at("error").get<std::string>(), raised = "TemplateError: ";
    if (expected.starts_with(raised)) {
      EXPECT_EQ(got, "error: chat template: " + expected.substr(raised.size())) << file << ": " << request;
    } else {
      EXPECT_THAT(got, StartsWith("error: chat template, line ")) << file << ": " << request << expected;
    }
  }
}

ErrorKind kind_of_failure(const ChatTemplate& chat, const Value& context, std::string& message) {
  try {
    message = "rendered: " + chat.render(context);
  } catch (const Error& error) {
    message = error.what();
    return error.kind();
  }
  return ErrorKind::internal;
}

TEST(ChatTemplate, Complaint35_SystemMessageInTheWrongPlaceIsOneClearError) {
  const ChatTemplate chat = ChatTemplate::parse(read_data("template/chat/steps.jinja"));
  std::string message;
  for (const char* name : {"system in the middle", "two systems"}) {
    EXPECT_EQ(kind_of_failure(chat, request_context(name), message), ErrorKind::invalid_input);
    EXPECT_EQ(message, "chat template: System message must be at the beginning.") << name;
  }
  for (const char* name : {"no messages", "system only", "tool role only", "unknown role", "role missing",
                           "unknown part", "content a number", "content a dict"}) {
    EXPECT_EQ(kind_of_failure(chat, request_context(name), message), ErrorKind::invalid_input)
        << name << message;
    EXPECT_THAT(message, StartsWith("chat template"));
    EXPECT_EQ(message.find('\n'), std::string::npos);
  }
  // What is allowed renders: empty content, a list of parts, the tool role after a call.
  for (const char* name : {"empty content", "parts", "content none", "tool call", "system first"}) {
    EXPECT_THAT(chat.render(request_context(name)), HasSubstr("<|im_start|>user\n")) << name;
  }
}

TEST(ChatTemplate, WhatATemplateRaisesIsOnePrintableLine) {
  const ChatTemplate chat = ChatTemplate::parse("{{ raise_exception('bad role: ' ~ role) }}");
  std::string message;
  EXPECT_EQ(kind_of_failure(chat, Value::dict({{"role", "a\nb\x1b[31m"}}), message),
            ErrorKind::invalid_input);
  EXPECT_EQ(message, "chat template: bad role: a\\x0ab\\x1b[31m");
}

TEST(ChatTemplate, RequestPassesWhatHuggingFacePasses) {
  const ChatTemplate chat = ChatTemplate::parse(
      "{{ messages|length }}|{{ tools is none }}|{{ documents is none }}|{{ add_generation_prompt }}|"
      "{{ enable_thinking is defined }}|{{ bos_token }}|{{ extra }}|{{ eos_token is defined }}");
  ChatRequest request;
  request.messages = Value::list({Value::dict({{"role", "user"}, {"content", "x"}})});
  request.special_tokens = {{"bos_token", "<s>"}};
  request.extra = {{"extra", Value::list({1, 2.5, nullptr})}};
  EXPECT_EQ(chat.render(request), "1|True|True|False|False|<s>|[1, 2.5, None]|False");
  request.enable_thinking = false;
  request.extra = {{"bos_token", "<override>"}, {"tools", Value::list({1})}};
  EXPECT_EQ(chat.render(request), "1|False|True|False|True|<override>||False");
}

TEST(ChatTemplate, TheDateComesFromTheCaller) {
  const ChatTemplate chat =
      ChatTemplate::parse("{{ strftime_now('%d %B %Y') if use }}{{ strftime_now is defined }}");
  ChatRequest request;
  request.messages = Value::list({});
  EXPECT_EQ(chat.render(request), "True");
  request.extra = {{"use", true}};
  EXPECT_THROW(chat.render(request), Error);
  request.now.emplace();
  request.now->tm_year = 100;
  request.now->tm_mday = 29;
  request.now->tm_mon = 1;
  EXPECT_EQ(chat.render(request), "29 February 2000True");
}

}  // namespace
}  // namespace ponder::text::jinja

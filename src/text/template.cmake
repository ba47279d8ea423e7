# Chat templates: a room of its own inside text, since it needs nothing of the tokenizer.
set(template_sources
    template.cpp template_arith.cpp template_builtins.cpp template_eval.cpp template_exec.cpp template_filters.cpp
    template_format.cpp template_json.cpp template_lexer.cpp template_ops.cpp template_parser.cpp template_repr.cpp
    template_sequence_filters.cpp template_statements.cpp template_strings.cpp template_tests.cpp template_text.cpp
    template_time.cpp template_unicode.cpp template_value.cpp)
ponder_room(template
  SOURCES ${template_sources}
  DEPS ponder_base)
target_link_libraries(ponder_template PRIVATE PkgConfig::UTF8PROC nlohmann_json::nlohmann_json)

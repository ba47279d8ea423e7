ponder_test(template_test
  SOURCES template_chat_test.cpp template_fixture_test.cpp template_guard_test.cpp template_trust_test.cpp
          template_value_test.cpp
  DEPS ponder_template)

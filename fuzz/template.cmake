ponder_fuzzer(ponder_fuzz_template
  SOURCE template_fuzz.cpp
  DEPS ponder_template
  CORPUS "${PROJECT_SOURCE_DIR}/fuzz/corpus/template")

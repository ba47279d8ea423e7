ponder_fuzzer(ponder_fuzz_tokenizer
  SOURCE tokenizer_fuzz.cpp
  DEPS ponder_text
  CORPUS "${PROJECT_SOURCE_DIR}/fuzz/corpus/tokenizer")

ponder_fuzzer(request_fuzz SOURCE request_fuzz.cpp DEPS ponder_decide
  CORPUS "${PROJECT_SOURCE_DIR}/tests/data/decide/requests")

find_package(ZLIB REQUIRED)
add_executable(ponder_bench_tokenizer "${CMAKE_CURRENT_SOURCE_DIR}/tokenizer_bench.cpp")
target_link_libraries(ponder_bench_tokenizer PRIVATE ponder_text benchmark::benchmark ZLIB::ZLIB)
target_compile_definitions(ponder_bench_tokenizer PRIVATE PONDER_TEST_DATA="${PROJECT_SOURCE_DIR}/tests/data")

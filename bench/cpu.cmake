add_executable(ops_bench "${CMAKE_CURRENT_LIST_DIR}/ops_bench.cpp")
target_link_libraries(ops_bench PRIVATE ponder_cpu benchmark::benchmark)

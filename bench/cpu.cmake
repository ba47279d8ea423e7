add_executable(ops_bench "${CMAKE_CURRENT_LIST_DIR}/ops_bench.cpp" "${CMAKE_CURRENT_LIST_DIR}/sequence_bench.cpp")
target_include_directories(ops_bench PRIVATE "${CMAKE_CURRENT_LIST_DIR}")
target_link_libraries(ops_bench PRIVATE ponder_cpu benchmark::benchmark)

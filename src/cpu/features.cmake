# What the CPU can do, as a library of its own: front-ends report it without linking the kernels.
include_guard(GLOBAL)
add_library(ponder_cpu_features STATIC "${CMAKE_CURRENT_LIST_DIR}/cpu_features.cpp")
target_link_libraries(ponder_cpu_features PUBLIC ponder_base)

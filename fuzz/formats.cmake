ponder_fuzzer(safetensors_fuzz SOURCE safetensors_fuzz.cpp DEPS ponder_formats
              CORPUS "${PROJECT_SOURCE_DIR}/tests/data/formats/fuzz-safetensors")
ponder_fuzzer(torch_head_fuzz SOURCE torch_head_fuzz.cpp DEPS ponder_formats
              CORPUS "${PROJECT_SOURCE_DIR}/tests/data/formats/fuzz-torch")

# kernel_bench: every row of the kernel table against what the memory allows.
find_package(benchmark REQUIRED)
add_executable(kernel_bench ${CMAKE_CURRENT_LIST_DIR}/kernel_bench.cc)
target_link_libraries(kernel_bench PRIVATE catenary_options cat_kernels benchmark::benchmark)

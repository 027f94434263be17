/* Nothing of its own: it is compiled with one header of include/cuda_compat before it. */
int nothing_but_the_header(void);

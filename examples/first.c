#include <nccl.h>
#include <stdio.h>
int main(void) {
  float data[2] = {1, 2};
  ncclComm_t ranks[2];
  if (ncclCommInitAll(ranks, 2, NULL) || ncclGroupStart()) return 1;
  for (int i = 0; i < 2; ++i) ncclAllReduce(&data[i], &data[i], 1, ncclFloat, ncclSum, ranks[i], NULL);
  if (ncclGroupEnd()) return 1;
  for (int i = 0; i < 2; ++i) ncclCommDestroy(ranks[i]); /* waits for what is under way */
  printf("%g %g\n", data[0], data[1]);                   /* 3 3 */
  return data[0] != 3 || data[1] != 3;
}

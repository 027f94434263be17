/*
 * Collectives that NCCL has not: with parts of uneven length, and a barrier. Marks for NCCL's own,
 * and an end at which all ranks hear whether they agreed.
 * Plain C; C11 or C++11 and later.
 *
 * They are called as NCCL's are: on any thread, in the same order on all ranks of a communicator,
 * alone or between ncclGroupStart and ncclGroupEnd, mixed with NCCL's own. They enqueue on the
 * stream and return; buffers are used until the stream has done them. What goes wrong later is told
 * by ncclCommGetAsyncError and ncclGetLastError.
 *
 * Counts and displacements are arrays with an element for each rank, in elements of `datatype`, and
 * in the caller's memory, not the device's. They are read during the call and may be changed after
 * it. Part i of a buffer begins displs[i] elements into it. displs may be NULL: the parts are then
 * packed, in the order of ranks, without gaps. Parts may lie in any order and leave gaps, which are
 * not touched; parts that are received must not overlap. A count may be 0, and the displacement of
 * an empty part has no meaning. A buffer of which nothing is used may be NULL.
 *
 * Ranks whose counts do not fit together all get ncclInvalidUsage, with a message that names two of
 * them; the communicator then has failed, as after any disagreement.
 */
#ifndef CATENARY_COLLECTIVES_H_
#define CATENARY_COLLECTIVES_H_

#include <nccl.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * All-to-all of uneven parts: part i of sendbuff goes to rank i, part i of recvbuff comes from
 * rank i. A rank knows its own counts only: what rank i sends to rank j, sendcounts[j] there, is
 * what rank j receives from it, recvcounts[i] there. A rank's counts for itself must be equal.
 * In place: sendbuff is recvbuff, with the same counts and displacements for both; otherwise they
 * must not overlap.
 */
ncclResult_t catAlltoAllv(const void* sendbuff, const size_t sendcounts[], const size_t sdispls[],
                          void* recvbuff, const size_t recvcounts[], const size_t rdispls[],
                          ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream);

/*
 * All ranks get all ranks' elements: part i of recvbuff holds what rank i gave. recvcounts is the
 * same on all ranks; sendcount is this rank's recvcounts. rdispls may differ between ranks. In
 * place: sendbuff is this rank's part of recvbuff. If all counts are 0, nothing happens, as with
 * ncclAllGather.
 */
ncclResult_t catAllGatherv(const void* sendbuff, size_t sendcount, void* recvbuff,
                           const size_t recvcounts[], const size_t rdispls[],
                           ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream);

/*
 * Part i of all ranks' sendbuffs, reduced, goes to rank i. sendcounts is the same on all ranks;
 * recvcount is this rank's sendcounts. sdispls may differ between ranks. In place: recvbuff is this
 * rank's part of sendbuff, of which nothing else changes. If all counts are 0, nothing happens, as
 * with ncclReduceScatter.
 */
ncclResult_t catReduceScatterv(const void* sendbuff, const size_t sendcounts[],
                               const size_t sdispls[], void* recvbuff, size_t recvcount,
                               ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm,
                               cudaStream_t stream);

/*
 * What is behind it on the stream begins when all ranks' streams have come to it. It moves no data.
 */
ncclResult_t catBarrier(ncclComm_t comm, cudaStream_t stream);

/*
 * Marks the collectives that are called on this rank of `comm` from now on, NCCL's own too, until
 * there is another mark: a number for what frameworks know of them and their arguments do not say,
 * such as the type that the user named where bytes are moved. Ranks that mark one collective
 * differently disagree like ranks with different counts; the error says "mark 0x" and eight
 * digits for both. 0, with which a communicator begins, is no mark. Sends and receives have none.
 */
ncclResult_t catMarkCollectives(ncclComm_t comm, uint32_t mark);

/*
 * ncclCommFinalize that also waits for the other ranks to finalize, at most `patienceMs`
 * milliseconds, and not for those that have left or ended. Ranks that did not issue the same
 * collectives then all get ncclInvalidUsage, with a message that names what two of them issued:
 * also of the last one, of which ranks that only send would hear nothing more. Ranks that do not
 * come in time are no error. With a communicator that does not block it gives ncclInProgress, and
 * ncclCommGetAsyncError the outcome. It is for ranks in processes or threads of their own: in one
 * thread, each would wait in vain for the next one.
 */
ncclResult_t catCommFinalize(ncclComm_t comm, int patienceMs);

#ifdef __cplusplus
}
#endif

#endif

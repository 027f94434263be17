// Team: all threads of all processes of a run, where they meet.
//
// Every thread calls the same things in the same order; thread 0 of each process speaks with the
// other processes. Each call waits for all threads of the run.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <vector>

#include "bench/perf/launcher.h"

namespace catenary::perf {

enum class Combine { kFirst, kMean, kMin, kMax, kSum };

// Where threads wait for each other. std::barrier offers its core again and again before it sleeps:
// beside other programs each time costs a whole turn of theirs.
class Meeting {
 public:
  explicit Meeting(int threads) : threads_(threads) {}
  void arrive_and_wait();

 private:
  const int threads_;
  std::mutex mutex_;
  std::condition_variable all_came_;
  int here_ = 0;
  std::uint64_t times_ = 0;
};

class Team {
 public:
  Team(Launcher& launcher, int threads);

  void barrier(int thread);
  // One number from every thread of every process.
  double combine(int thread, double value, Combine how);
  // Element by element the maximum over this process's threads, then one row for each process.
  // Every thread gives as many values.
  std::vector<std::vector<double>> process_maxima(int thread, const std::vector<double>& values);

 private:
  Launcher& launcher_;
  const int threads_;
  Meeting meeting_;
  // Written by their thread, or by thread 0, between two meetings.
  std::vector<double> values_;
  std::vector<std::vector<double>> lists_;
  std::vector<std::vector<double>> rows_;
  double result_ = 0;
};

}  // namespace catenary::perf

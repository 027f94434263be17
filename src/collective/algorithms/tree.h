// A tree, as one rank sees it: whom it hangs from and who hangs from it. Schedules along trees
// (tree.cc) ask no more; which tree it is, is said here.
//
// Pure values; any thread.
#pragma once

#include <vector>

#include "src/collective/schedule.h"

namespace catenary {

struct TreeNode {
  int parent = kNobody;       // of the root
  std::vector<int> children;  // the one whose subtree is least comes first
  int depth = 0;              // of the root; a child's is one more
};

// Place p counts from the root and is written with digits of that radix. A parent's place is that
// of its child without the last digit that is not 0. With radix 2 the tree is binomial.
TreeNode knomial_node(const Place& at, int radix);

// The two trees of Sanders, Speck and Träff (2009), one a lane. The root stands outside and has one
// child. The others have places 1, 2, ... in the order of their ranks, and place p hangs in the
// middle of what hangs from it: odd places are leaves, 4k + 2 has the two beside it, 8k + 4 those
// two places away, and so on. The second tree is the first one mirrored, or shifted by a place if
// the number of places is odd, so that whoever has children in one has none in the other.
TreeNode double_tree_node(const Place& at);

}  // namespace catenary

#pragma once

namespace ponder::test {

// How often the test program has called operator new so far, in any thread.
long allocation_count();

}  // namespace ponder::test

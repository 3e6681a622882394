// How collect-symbolizer ends when it ends by itself.
#pragma once

namespace collect::symbolize {

inline constexpr int kExitDone = 0;
inline constexpr int kExitBadRequest = 3;
inline constexpr int kExitNotConfined = 4;  // it could not give up what it must: nothing was read
inline constexpr int kExitNoMemory = 5;
inline constexpr int kExitNoReader = 6;  // no one takes the answer

}  // namespace collect::symbolize

/* Of bionic, what the C++ library's headers look for: the compiler defines __ANDROID_API__. For a
 * compile check. */
#pragma once

/* Of bionic, what the C++ library's headers look for. For a compile check. */
#pragma once
#include <locale.h>

#ifdef __cplusplus
extern "C" {
#endif
long long strtoll_l(const char* text, char** end, int base, locale_t locale);
unsigned long long strtoull_l(const char* text, char** end, int base, locale_t locale);
#ifdef __cplusplus
}
#endif

/* Of Apple's SDK, what the C++ library's headers look for. For a compile check. */
#pragma once
#include <locale.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif
int sscanf_l(const char* text, locale_t locale, const char* format, ...);
int snprintf_l(char* out, size_t bytes, locale_t locale, const char* format, ...);
int asprintf_l(char** out, locale_t locale, const char* format, ...);
#ifdef __cplusplus
}
#endif

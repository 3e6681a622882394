// libpq, loaded when a fleet database is configured and not before: as a linked library it would
// triple the time that a small program takes to start (LEASES.md "libpq"), for everybody.
//
// Any thread.
#pragma once

#include <libpq-fe.h>

#include "formats/core/result.h"

namespace collect::fleet {

#define COLLECT_LIBPQ_FUNCTIONS(X) \
  X(PQclear)                       \
  X(PQconnectPoll)                 \
  X(PQconnectStartParams)          \
  X(PQconsumeInput)                \
  X(PQerrorMessage)                \
  X(PQfinish)                      \
  X(PQflush)                       \
  X(PQgetResult)                   \
  X(PQgetisnull)                   \
  X(PQgetlength)                   \
  X(PQgetvalue)                    \
  X(PQisBusy)                      \
  X(PQnfields)                     \
  X(PQntuples)                     \
  X(PQresultErrorMessage)          \
  X(PQresultStatus)                \
  X(PQsendQueryParams)             \
  X(PQsetNoticeProcessor)          \
  X(PQsetSingleRowMode)            \
  X(PQsetnonblocking)              \
  X(PQsocket)                      \
  X(PQstatus)

// Its functions, under their own names.
struct Libpq {
#define COLLECT_LIBPQ_MEMBER(name) decltype(&::name) name = nullptr;
  COLLECT_LIBPQ_FUNCTIONS(COLLECT_LIBPQ_MEMBER)
#undef COLLECT_LIBPQ_MEMBER
};

// kUnsupported: it is not installed, or too old.
Result<const Libpq*> load_libpq();

}  // namespace collect::fleet

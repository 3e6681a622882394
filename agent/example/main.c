/* Counts the primes below a number. It has nothing to do with tracing but for one line, which says
 * what the agent does; COLLECT_CONNECT=127.0.0.1:7710 in the environment sends the calls there. */
#include <collect/agent.h>
#include <stdio.h>
#include <stdlib.h>

static int is_prime(unsigned n) {
  for (unsigned divisor = 2; divisor * divisor <= n; ++divisor) {
    if (n % divisor == 0) return 0;
  }
  return n >= 2;
}

static unsigned count_primes(unsigned end) {
  unsigned count = 0;
  for (unsigned n = 0; n < end; ++n) count += (unsigned)is_prime(n);
  return count;
}

int main(int argc, char** argv) {
  const unsigned end = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 1000;
  printf("%u primes below %u\n", count_primes(end), end);
  printf("agent: %s\n", collect_agent_status());
  return 0;
}

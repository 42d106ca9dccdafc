/* A writer and a reader that carry nothing: `idle` and `disc`. */
#include <string.h>

#include "kit.h"

static void print_idle(const struct agent_options *options, long bare_kib) {
  sleep_until_ns(agent_now_ns() + (uint64_t)(options->warm_s * 1e9));
  const struct agent_usage start = usage_now();
  const uint64_t end_ns = start.at_ns + (uint64_t)(options->secs * 1e9);
  if (!agent_stopping) sleep_until_ns(end_ns);
  if (agent_stopping) return;
  const struct agent_usage used = usage_since(&start);
  const struct agent_memory memory = memory_now();
  say("{\"ev\":\"result\",\"role\":\"idle\",\"cpu_s\":%.6f,\"wall_s\":%.6f,\"nvcsw\":%ld,"
      "\"bare_kib\":%ld,\"resident_kib\":%ld,\"peak_kib\":%ld,\"private_kib\":%ld}",
      used.cpu_s, 1e-9 * (double)used.at_ns, used.nvcsw, bare_kib, memory.resident_kib,
      memory.peak_kib, memory.private_kib);
}

void run_idle(const struct agent_adapter *adapter, const struct agent_options *options,
              uint64_t main_ns) {
  const char *writes = options->id ? "Pong" : "Ping", *reads = options->id ? "Ping" : "Pong";
  const uint64_t t0 = options->t0 ? options->t0 : main_ns;
  const long bare_kib = memory_now().resident_kib;
  open_endpoints(adapter, options, writes, reads, NULL, NULL);
  const uint64_t open_ns = agent_now_ns();
  if (options->n) {
    if (!wait_matched(adapter, options->n, options->n)) return;
    const uint64_t matched_ns = agent_now_ns();
    say("{\"ev\":\"matched\",\"main_ms\":%.3f,\"init_ms\":%.3f,\"match_ms\":%.3f}",
        1e-6 * (double)(int64_t)(main_ns - t0), 1e-6 * (double)(int64_t)(open_ns - t0),
        1e-6 * (double)(int64_t)(matched_ns - t0));
  }
  if (!strcmp(options->role, "idle")) print_idle(options, bare_kib);
  while (!agent_stopping) sleep_until_ns(agent_now_ns() + UINT64_C(3600000000000));
}

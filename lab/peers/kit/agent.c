/* Entry point of an agent, and what all roles do alike. */
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "kit.h"

volatile int agent_stopping;
const size_t agent_sizes[3] = {sizeof(struct agent_options), sizeof(struct agent_message),
                               sizeof(struct agent_adapter)};

/* A write may block for 10 s; the agent has 3 s to end. */
static void on_alarm(int signal) {
  (void)signal;
  _exit(0);
}

static void on_terminate(int signal) {
  (void)signal;
  agent_stopping = 1;
  alarm(2);
}

static void install_signals(void) {
  struct sigaction action = {.sa_handler = on_terminate};
  sigemptyset(&action.sa_mask);
  sigaction(SIGTERM, &action, NULL);
  sigaction(SIGINT, &action, NULL);
  action.sa_handler = on_alarm;
  sigaction(SIGALRM, &action, NULL);
  action.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &action, NULL);
}

void open_endpoints(const struct agent_adapter *adapter, const struct agent_options *options,
                    const char *writes, const char *reads, agent_handler handler, void *context) {
  const char *why = adapter->open(options, writes, reads);
  if (!why && reads && handler && options->notify == AGENT_LISTENER)
    why = adapter->listen(handler, context);
  if (why) agent_fail("%s", why);
  say("{\"ev\":\"ready\"}");
}

bool wait_matched(const struct agent_adapter *adapter, int readers, int writers) {
  const uint64_t end_ns = agent_now_ns() + UINT64_C(30000000000);
  while (!agent_stopping) {
    const int matched_readers = readers ? adapter->matched_readers() : 0;
    const int matched_writers = writers ? adapter->matched_writers() : 0;
    if (matched_readers >= readers && matched_writers >= writers) return true;
    if (agent_now_ns() > end_ns)
      agent_fail("matched %d of %d readers and %d of %d writers within 30 s", matched_readers,
                 readers, matched_writers, writers);
    agent_sleep_ns(200000);
  }
  return false;
}

void receive_some(const struct agent_adapter *adapter, const struct agent_options *options,
                  agent_handler handler, void *context, int64_t timeout_ns) {
  if (timeout_ns > 100000000) timeout_ns = 100000000;
  if (options->notify == AGENT_LISTENER)
    agent_sleep_ns((uint64_t)timeout_ns);
  else
    adapter->receive(handler, context, options->notify == AGENT_POLL ? 0 : timeout_ns);
}

bool write_octets(const struct agent_adapter *adapter, const struct agent_options *options,
                  const void *data, size_t size, bool retry, uint64_t *refused) {
  for (;;) {
    enum agent_write result = AGENT_REFUSED;
    if (options->loan) {
      void *loan = adapter->loan(size);
      if (loan) {
        touch_write(options->touch, loan, data, size);
        result = adapter->write_loan(loan, size);
      }
    } else {
      result = adapter->write(data, size);
    }
    if (result == AGENT_WRITTEN) return true;
    ++*refused;
    if (!retry || agent_stopping) return false;
    if (adapter->flush) adapter->flush();
    agent_sleep_ns(10000);
  }
}

static void print_info(const struct agent_adapter *adapter, const struct agent_options *options) {
  const bool fixed = adapter->fixed_size && adapter->fixed_size(options);
  say("{\"ev\":\"info\",\"peer\":\"%s\",\"version\":\"%s\",\"transports\":\"%s\","
      "\"notifies\":\"%s\",\"types\":\"%s\",\"fixed_size\":%s,"
      "\"roles\":\"info,ping,pong,pub,sub,idle,disc,load%s%s\"}",
      adapter->peer, adapter->version, adapter->transports, adapter->notifies, adapter->types,
      fixed ? "true" : "false", adapter->durable ? ",hold,join" : "",
      adapter->join ? ",crowd,seek,mesh" : "");
}

int agent_main(int argc, char **argv, const struct agent_adapter *adapter) {
  const uint64_t main_ns = agent_now_ns();
  if (argc < 2) agent_fail("usage: %s info|ping|pong|pub|sub|idle|disc [key=value ...]", argv[0]);
  install_signals();
  static struct agent_options options;
  options_parse(&options, argc, argv, adapter);
  const char *role = options.role;
  if (!strcmp(role, "info")) {
    print_info(adapter, &options);
    return 0;
  }
  if (!strcmp(role, "ping")) run_ping(adapter, &options);
  else if (!strcmp(role, "pong")) run_pong(adapter, &options);
  else if (!strcmp(role, "pub") || !strcmp(role, "load")) run_pub(adapter, &options);
  else if (!strcmp(role, "sub")) run_sub(adapter, &options);
  else if (!strcmp(role, "idle") || !strcmp(role, "disc")) run_idle(adapter, &options, main_ns);
  else if (adapter->durable && !strcmp(role, "hold")) run_hold(adapter, &options);
  else if (adapter->durable && !strcmp(role, "join")) run_join(adapter, &options, main_ns);
  else if (adapter->join && !strcmp(role, "crowd")) run_crowd(adapter, &options);
  else if (adapter->join && !strcmp(role, "seek")) run_seek(adapter, &options, main_ns);
  else if (adapter->join && !strcmp(role, "mesh")) run_mesh(adapter, &options, main_ns);
  else agent_fail("this agent has no role %s", role);
  /* A listener may still be writing. */
  if (agent_stopping) agent_sleep_ns(50000000);
  /* A system that hangs while it closes must not keep the agent alive. */
  alarm(2);
  adapter->close();
  return 0;
}

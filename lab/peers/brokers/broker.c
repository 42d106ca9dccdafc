/* See broker.h. */
#include "broker.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kit.h"

#define START_NS UINT64_C(20000000000)
#define STOP_NS UINT64_C(2000000000)
#define STEP_NS UINT64_C(10000000)

static void on_terminate(int signal) {
  (void)signal;
  agent_stopping = 1;
}

const char *broker_parse(const char *value, char address[16], int *port) {
  struct in_addr parsed;
  const char *colon = value ? strchr(value, ':') : NULL;
  if (!colon || colon - value > 15) return "broker is not ADDRESS:PORT";
  memcpy(address, value, (size_t)(colon - value));
  address[colon - value] = 0;
  *port = atoi(colon + 1);
  if (inet_pton(AF_INET, address, &parsed) != 1 || *port < 1 || *port > 65535)
    return "broker is not an IPv4 address and a port";
  return NULL;
}

void broker_prepare(struct broker_options *options, int argc, char **argv) {
  const char *broker = NULL;
  options->transport = "default";
  for (int at = 2; at < argc; at++) {
    if (!strncmp(argv[at], "broker=", 7)) broker = argv[at] + 7;
    if (!strncmp(argv[at], "transport=", 10)) options->transport = argv[at] + 10;
  }
  const char *why = broker_parse(broker, options->address, &options->port);
  if (why) agent_fail("%s", why);
  snprintf(options->directory, sizeof options->directory, "/tmp/takt-broker-XXXXXX");
  if (!mkdtemp(options->directory)) agent_fail("no temporary directory %s", options->directory);
}

static int remove_entry(const char *path, const struct stat *status, int kind, struct FTW *walk) {
  (void)status, (void)kind, (void)walk;
  return remove(path);
}

static bool accepts(const struct broker_options *options) {
  struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)options->port)};
  inet_pton(AF_INET, options->address, &to.sin_addr);
  const int socket_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const bool accepted = !connect(socket_fd, (struct sockaddr *)&to, sizeof to);
  close(socket_fd);
  return accepted;
}

static pid_t start(char *const command[]) {
  const pid_t self = getpid(), child = fork();
  if (child) return child;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  /* What the broker prints must not mix with the JSON lines. */
  const int null = open("/dev/null", O_RDWR);
  dup2(null, 0);
  dup2(null, 1);
  dup2(null, 2);
  if (getppid() == self) execvp(command[0], command);
  _exit(127);
}

int broker_run(const struct broker_options *options, char *const command[]) {
  struct sigaction action = {.sa_handler = on_terminate};
  sigaction(SIGTERM, &action, NULL);
  sigaction(SIGINT, &action, NULL);
  if (accepts(options)) agent_fail("port %d is in use", options->port);
  const pid_t child = start(command);
  const uint64_t start_ns = agent_now_ns();
  const char *why = child < 0 ? "cannot start a process" : NULL;
  bool ready = false, ended = child < 0;
  while (!agent_stopping && !why) {
    if (waitpid(child, NULL, WNOHANG) == child) {
      ended = true;
      why = "ended by itself";
    } else if (!ready && accepts(options)) {
      ready = true;
      say("{\"ev\":\"ready\"}");
    } else if (!ready && agent_now_ns() > start_ns + START_NS) {
      why = "accepts no connection within 20 s";
    }
    agent_sleep_ns(STEP_NS);
  }
  if (!ended) {
    kill(child, SIGTERM);
    for (uint64_t waited = 0; !ended && waited < STOP_NS; waited += STEP_NS) {
      ended = waitpid(child, NULL, WNOHANG) == child;
      if (!ended) agent_sleep_ns(STEP_NS);
    }
    if (!ended) kill(child, SIGKILL);
  }
  nftw(options->directory, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
  if (why) agent_fail("%s %s", command[0], why);
  return 0;
}

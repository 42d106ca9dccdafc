/* The role `broker`: starts a broker as a child process and ends it at SIGTERM. */
#ifndef TAKT_PEERS_BROKER_H
#define TAKT_PEERS_BROKER_H

#ifdef __cplusplus
extern "C" {
#endif

/* What the key `broker` and the key `transport` of the arguments say. */
struct broker_options {
  char address[16];
  int port;
  const char *transport;
  char directory[64]; /* temporary; removed at the end */
};

/* Reads the arguments and makes the directory. Ends the process with an error line if it fails. */
void broker_prepare(struct broker_options *, int argc, char **argv);
/* Address and port of a key `broker`; NULL or an error text. */
const char *broker_parse(const char *value, char address[16], int *port);
/* Runs the command until SIGTERM or until it ends; prints `ready` when the port accepts
 * connections. The exit code of this process. */
int broker_run(const struct broker_options *, char *const command[]);

#ifdef __cplusplus
}
#endif
#endif

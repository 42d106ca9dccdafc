/* Lets the Rust side check at the start that it mirrors the structures of the kit. */
#include "agent.h"

const size_t agent_sizes[3] = {sizeof(struct agent_options), sizeof(struct agent_message),
                               sizeof(struct agent_adapter)};

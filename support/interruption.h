// Clean-up when SIGINT, SIGTERM or SIGHUP ends the program: temporary folders and running child processes.
#pragma once

#include <string>
#include <sys/types.h>

namespace ptxrewrite {

// From this call on, such a signal kills the registered children, removes the registered folders, and then ends the
// program as it would have done by default. A dedicated thread waits for the signals, so this must be called before any
// other thread starts. Ignored signals (nohup) stay ignored. For programs only; a library leaves signals to its user.
void clean_up_on_signals();

// Undoes this for the calling thread before it executes another program (exec), in which blocked signals would
// otherwise stay blocked.
void leave_signals_to_next_program();

namespace interruption {

// While the program is being ended, these functions do not return, so that the output of a killed child is not taken
// for its result.

// fork(); the child is, or will be, the leader of its own process group.
pid_t fork_child();
void child_ended(pid_t child);

// mkdtemp(): returns false on failure, with errno set.
bool make_folder(std::string& name_template);
// Creates a file whose name is `path` with a random suffix, and sets `path` to this name. Its permissions are `mode`
// without the umask. Returns a descriptor for reading and writing, or -1 with errno set.
int make_file(std::string& path, mode_t mode);
// Removes a folder that make_folder created, with its contents.
void remove_folder(const std::string& folder);
// Unregisters a file that make_file created: it has been removed, or renamed to be kept.
void file_finished(const std::string& file);

} // namespace interruption

} // namespace ptxrewrite

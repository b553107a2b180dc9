// What must not outlive the program when SIGINT, SIGTERM or SIGHUP ends it: temporary folders and running children.
#pragma once

#include <string>
#include <sys/types.h>

namespace ptxrewrite {

// From now on, such a signal kills the children and removes the folders that are registered, and then ends the program
// as it would have without us. A thread of its own waits for the signals, so this must be called before any other
// thread starts. Signals that are ignored (nohup) stay ignored. For programs; a library leaves signals to its user.
void clean_up_on_signals();

// Undoes that for the calling thread, before the process becomes another program (exec): a blocked signal would stay
// blocked in it.
void leave_signals_to_next_program();

namespace interruption {

// Whoever calls these while the program is being ended does not return: what a killed child leaves must not be taken
// for its result.

// fork(); the child leads, or will lead, a process group of its own.
pid_t fork_child();
void child_ended(pid_t child);

// mkdtemp(): false on failure, with errno.
bool make_folder(std::string& name_template);
// Creates a file whose name is `path` and a random suffix, which are its new value. `mode` less the umask are its
// permissions. Returns a descriptor for reading and writing, or -1 with errno.
int make_file(std::string& path, mode_t mode);
// Removes a folder made here with all that it holds.
void remove_folder(const std::string& folder);
// A file made here is gone, or has got another name and stays.
void file_finished(const std::string& file);

} // namespace interruption

} // namespace ptxrewrite

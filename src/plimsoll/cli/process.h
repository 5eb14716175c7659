// What a command needs of the process it runs in, whatever the shell or scheduler has set.
#pragma once

#include "plimsoll/base/error.h"

namespace plimsoll::cli {

// Opens what is closed of standard input, output and error, so that no file of a run is taken for
// one of them. Writing to a closed output still fails.
void open_standard_files();

// Gives the process and its threads 8 MiB of stack each where the limit is below 1 MiB. Raises
// Exit::does_not_fit when that is not allowed.
void require_stack();

// An exception that leaves a thread ends the process: with the message and the code it would have
// had in main.
void report_lost_exceptions();

// The exception being handled as an error for a person. Memory or threads that the system refuses
// are Exit::does_not_fit; what nobody expected is Exit::bug.
Error current_error();

// Writes the message to standard error; returns the exit code.
int report(const Error& error);

// Whether everything written to standard output has arrived.
bool output_arrived();

}  // namespace plimsoll::cli

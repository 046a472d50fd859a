// Package chaos runs several instances of the built program on a live feed and three real brokers, does to them what
// happens in years of operation, and has package verify judge the topic.
//
// A Plan says what is done to whom, when and for how long. It follows from a seed alone, and so does what the feed is
// given; the time of day plays no part. CHAOS_SEED repeats the plan of a run, CHAOS_FAULTS says how many faults there
// are:
//
//	kill      SIGKILL; another instance joins later
//	stop      SIGTERM; the instance must end with exit code 0
//	pause     SIGSTOP, and SIGCONT after less or more than the session, or than the transactions' timeout
//	join      an instance starts
//	cut       the network between an instance and one broker, or all: see Mode
//	kill_broker, stop_broker, pause_broker
//	seek        "bridge seek --force", back or forward, while an instance is paused; some seeks are killed
//	retain      an instance is paused, retention removes the oldest segments, delivered or not, and the instance wakes up
//	trim        the same, and of the oldest segment that is left all chunks but the last of each shard
//
// Each instance has a Link to each broker, which advertises it: whatever address the client learns, it is a link's.
//
// # What a run proves
//
// That the faults which happened, in that order, broke nothing. When they hit, to the microsecond, is the machine's: a
// seed repeats the plan, not the interleaving. Brokers lose no bytes that they wrote: a killed process leaves them to
// the kernel, so the loss of a machine's memory is not tried; one broker is away at a time, so no partition loses its
// majority.
//
// That the runs can fail is seen in mutation_test.go: with the fence, the order of fence and read, or the barrier taken
// out (package mutation), each is found in a scenario of its own, which the whole program survives.
package chaos

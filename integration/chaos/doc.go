// Package chaos runs several instances of the built program on a live feed and three real brokers, does to them what
// happens in years of operation, and has package verify judge the topic.
//
// A Plan says what is done to whom, when and for how long. The plan and the events of the feed follow from a
// seed alone; the time of day plays no part. CHAOS_SEED repeats the plan of a run, CHAOS_FAULTS says how many
// faults there are:
//
//	kill      SIGKILL; another instance joins later
//	stop      SIGTERM; the instance must end with exit code 0
//	pause     SIGSTOP, then SIGCONT, before or after the session timeout or the transaction timeout
//	join      an instance starts
//	cut       the network between an instance and one broker, or all: see Mode
//	kill_broker, stop_broker, pause_broker
//	seek        "bridge seek --force", back or forward, while an instance is paused; some seeks are killed
//	retain      while an instance is paused, retention removes the oldest segments, delivered or not
//	trim        the same; and the oldest segment that is left loses all chunks but the last of each shard
//	scan        "bridge scan", mostly with a sweep; some are cancelled
//	grow        the topic gets a partition
//	storm       each third request for storage fails
//
// The feed is that of an account, which changes and is served over HTTP. The bridge begins with a scan of it, and every
// other seed has lost history repaired by a scan. In the end, after one more sweep, the topic has to be the account.
//
// Each instance has a Link to each broker. The brokers advertise the links, so an instance learns no other
// address.
//
// # What a run proves
//
// A run proves that its faults, in that order, broke nothing. The machine decides the exact moment of a
// fault: a seed repeats the plan, not the interleaving. Brokers lose no bytes that they wrote, because a
// killed process leaves them to the kernel. So the loss of a machine's memory is not tried. One broker is
// away at a time, so no partition loses its majority.
//
// mutation_test.go shows that the runs can fail. It takes out the fence, the order of fence and read, or the
// barrier (package mutation). A scenario of its own finds each of them missing; the whole program survives
// that scenario.
package chaos

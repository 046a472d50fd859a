// Package judge checks what the bridge wrote to topics against its promises: it reads the state and the topics from
// Kafka, the feed if asked to, chooses the validators of package verify that apply under the settings, and reports what
// they find.
//
// Run reads everything in an order in which nothing that the bridge does meanwhile looks like a fault: the state before
// the ends of the topics, so that what the state covers is in the topics, and those before the feed, so that what is in
// a topic is in the feed.
//
// A verification is one run. It opens each topic (a judgedTopic), reads the feed once for all of them (a feedScan,
// with a comparison for each topic), and then reads each topic with the checks that apply. If records are missing or
// differ, it reads the feed once more, for their places and fields (an inquiry). With --account it compares the last
// records of keys with a listing (a census). Each of these knows only what is named before it in this paragraph.
package judge

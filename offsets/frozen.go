package offsets

// Names of those frozen settings that are looked up in Frontier.Settings. Each state has them, so they never change.
const (
	FrozenTopic       = "BRIDGE_TOPIC"
	FrozenStart       = "BRIDGE_START"
	FrozenEnd         = "BRIDGE_END_TIME"
	FrozenDelivery    = "BRIDGE_DELIVERY"
	FrozenEnvelope    = "BRIDGE_ENVELOPE"
	FrozenMarkers     = "BRIDGE_RESOLVED_TO"
	FrozenPartitioner = "BRIDGE_PARTITIONER"
)

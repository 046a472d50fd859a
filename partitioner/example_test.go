package partitioner_test

import (
	"fmt"

	"blobfeed/partitioner"
)

// A consumer finds the partition of a blob, as the bridge and Kafka's Java producer choose it.
func Example() {
	fmt.Println(partitioner.Murmur2([]byte(`["photos/cat.jpg"]`), 6))
	// Output: 3
}

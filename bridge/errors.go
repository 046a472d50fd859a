package bridge

import "blobfeed/bridge/pipeline"

// The errors of the pipeline that an Observer can get.
type (
	EventError    = pipeline.EventError
	TooLargeError = pipeline.TooLargeError
)

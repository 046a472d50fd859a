package account

import (
	"fmt"

	"blobfeed/source/inventory"
)

// containersOfFill is how many containers Fill makes.
const containersOfFill = 50

// Fill writes blobs into fifty containers, sixty percent of them into one under one flat prefix.
func Fill(a *Account, blobs int) {
	flat := blobs * 6 / 10
	for i := range flat {
		a.Put("flat", inventory.Blob{Name: fmt.Sprintf("data/part-%09d.parquet", i), Length: int64(i)})
	}
	for i := range blobs - flat {
		container := fmt.Sprintf("container-%02d", i%(containersOfFill-1))
		a.Put(container, inventory.Blob{Name: fmt.Sprintf("2026/%02d/%02d/file %06d.json", i%12+1, i%28+1, i),
			Length: int64(i)})
	}
}

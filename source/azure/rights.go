package azure

import (
	"context"
	"errors"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
)

// elsewhere is a container that has nothing to do with the feed. It need not exist.
const elsewhere = "$logs"

// ReadsMore reports whether the credentials may read other containers than the feed's. It asks for one line of a
// listing.
func (c *Config) ReadsMore(ctx context.Context) (bool, error) {
	cl, _, err := c.client(elsewhere)
	if err != nil {
		return false, err
	}
	_, err = cl.NewListBlobsFlatPager(&container.ListBlobsFlatOptions{MaxResults: to.Ptr[int32](1)}).NextPage(ctx)
	var status *azcore.ResponseError
	switch {
	case err == nil, bloberror.HasCode(err, bloberror.ContainerNotFound): // the service looks at rights first
		return true, nil
	case errors.As(err, &status):
		return false, nil
	}
	return false, c.explain(err)
}

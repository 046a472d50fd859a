package topics

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
)

// A topic that was created answers, and one that exists is no error.
func TestCreate(t *testing.T) {
	c, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	adm := kadm.NewClient(cl)
	for _, first := range []bool{true, false} {
		if have, created, err := Create(t.Context(), adm, "new", 3, 1, nil); err != nil || created != first || have != 3 {
			t.Fatalf("%d partitions, created %v, %v", have, created, err)
		}
	}
}

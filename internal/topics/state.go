package topics

import (
	"context"
)

// OpenState makes sure that the topic of the bridge's state exists, and keeps the state. It returns the number of
// partitions, which is the number of leases and never changes. Created says that this call created it: then there is
// nothing in it.
func (a *Admin) OpenState(ctx context.Context, name string, leases int32) (have int, created bool, err error) {
	partitions := map[string]int32{}
	if a.By == ByNobody {
		partitions, err = Count(ctx, a.admin(), name)
	} else { // brokers that create topics do not know the settings
		partitions[name], created, err = Create(ctx, a.admin(), name, leases, a.Replication, a.Settings(State))
	}
	if err == nil && !created { // a new one is not known to all brokers yet
		err = a.keepsState(ctx, name)
	}
	return int(partitions[name]), created, err
}

// keepsState returns a Problem if the brokers delete what is written to the topic of the bridge's state.
func (a *Admin) keepsState(ctx context.Context, name string) error {
	settings, err := Read(ctx, a.admin(), name)
	if err != nil {
		return err
	}
	if problems := a.content(&Topic{Kind: State, Name: name}, settings[name], a.Now()).problems; len(problems) > 0 {
		return &problems[0]
	}
	return nil
}

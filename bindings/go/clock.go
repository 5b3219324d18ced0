package kubewright

import (
	"context"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"
)

// Clock returns cluster time as a clock to inject into what is tested. It asks the server once, and fails as
// [Admin.Now] does; from then on each look at the clock asks it. When the server can no longer be asked, time stands
// still at what it was last.
func (a *Admin) Clock(ctx context.Context) (clock.PassiveClock, error) {
	now, err := a.Now(ctx)
	if err != nil {
		return nil, err
	}
	made := &clusterClock{admin: a}
	made.last.Store(&now)
	return made, nil
}

// clockPatience is how long a look at the clock waits, as it has no context. Nothing is served while time is advanced.
const clockPatience = time.Minute

type clusterClock struct {
	admin *Admin
	last  atomic.Pointer[time.Time]
}

var _ clock.PassiveClock = (*clusterClock)(nil)

// Now returns cluster time.
func (c *clusterClock) Now() time.Time {
	ctx, cancel := context.WithTimeout(context.Background(), clockPatience)
	defer cancel()
	now, err := c.admin.Now(ctx)
	if err != nil {
		return *c.last.Load()
	}
	c.last.Store(&now)
	return now
}

// Since returns how much cluster time has passed since then.
func (c *clusterClock) Since(then time.Time) time.Duration { return c.Now().Sub(then) }

package notify

import (
	"sync"

	"github.com/fiscalhub/fiscalhub/internal/store"
)

// aheadQueues hold the deliveries that were claimed ahead, by their endpoints. Each waits
// until an attempt to its endpoint ends.
type aheadQueues struct {
	mu      sync.Mutex
	waiting map[string][]store.Delivery
	count   int
}

func (q *aheadQueues) len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.count
}

// add queues the deliveries of a claim that were claimed ahead, and returns the others.
func (q *aheadQueues) add(claimed []store.Delivery) (now []store.Delivery) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, d := range claimed {
		if !d.Ahead {
			now = append(now, d)
			continue
		}
		if q.waiting == nil {
			q.waiting = map[string][]store.Delivery{}
		}
		q.waiting[d.EndpointID] = append(q.waiting[d.EndpointID], d)
		q.count++
	}
	return now
}

// next takes the delivery to an endpoint that has waited longest. It reports false when
// there is none.
func (q *aheadQueues) next(endpointID string) (store.Delivery, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	waiting := q.waiting[endpointID]
	if len(waiting) == 0 {
		return store.Delivery{}, false
	}
	q.count--
	if len(waiting) == 1 {
		delete(q.waiting, endpointID)
	} else {
		q.waiting[endpointID] = waiting[1:]
	}
	return waiting[0], true
}

// drop takes all deliveries to an endpoint.
func (q *aheadQueues) drop(endpointID string) []store.Delivery {
	q.mu.Lock()
	defer q.mu.Unlock()
	dropped := q.waiting[endpointID]
	delete(q.waiting, endpointID)
	q.count -= len(dropped)
	return dropped
}

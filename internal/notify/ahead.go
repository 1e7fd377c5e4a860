package notify

import (
	"sync"

	"github.com/fiscalhub/fiscalhub/internal/store"
)

// refillAt is how few waiting deliveries to an endpoint make the sender claim more.
const refillAt = 24

// aheadQueues hold the deliveries that were claimed ahead, by their endpoints. Each waits
// until an attempt to its endpoint ends.
type aheadQueues struct {
	mu      sync.Mutex
	waiting map[string][]store.Delivery
	workers map[string]int // for each endpoint, how many take deliveries from its queue
	count   int            // of all deliveries that wait
}

func (q *aheadQueues) len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.count
}

// add queues the deliveries of a claim that were claimed ahead, and returns the others. A
// worker must start with each of those, and call next until it reports false, or drop. When
// the last worker of an endpoint has ended meanwhile, add returns deliveries that were
// claimed ahead, too.
func (q *aheadQueues) add(claimed []store.Delivery) (now []store.Delivery) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.waiting == nil {
		q.waiting, q.workers = map[string][]store.Delivery{}, map[string]int{}
	}
	for _, d := range claimed {
		if d.Ahead {
			q.waiting[d.EndpointID] = append(q.waiting[d.EndpointID], d)
			q.count++
			continue
		}
		q.workers[d.EndpointID]++
		now = append(now, d)
	}
	for _, d := range claimed {
		if q.workers[d.EndpointID] > 0 {
			continue
		}
		for range d.Endpoint.Concurrency {
			if first, ok := q.take(d.EndpointID); ok {
				q.workers[d.EndpointID]++
				now = append(now, first)
			}
		}
	}
	return now
}

// take takes the delivery to an endpoint that has waited longest.
func (q *aheadQueues) take(endpointID string) (store.Delivery, bool) {
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

// next takes the delivery to an endpoint that has waited longest. When there is none, the
// worker ends, and next reports false. low reports that the queue should be filled again.
func (q *aheadQueues) next(endpointID string) (d store.Delivery, low, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if d, ok = q.take(endpointID); !ok {
		q.end(endpointID)
	}
	return d, len(q.waiting[endpointID]) <= refillAt, ok
}

// drop takes all deliveries to an endpoint. The worker ends.
func (q *aheadQueues) drop(endpointID string) []store.Delivery {
	q.mu.Lock()
	defer q.mu.Unlock()
	dropped := q.waiting[endpointID]
	delete(q.waiting, endpointID)
	q.count -= len(dropped)
	q.end(endpointID)
	return dropped
}

func (q *aheadQueues) end(endpointID string) {
	if q.workers[endpointID]--; q.workers[endpointID] <= 0 {
		delete(q.workers, endpointID)
	}
}

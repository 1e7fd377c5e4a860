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
	blocked map[string]int // for each endpoint, how many failures are not recorded yet
	count   int            // of all deliveries that wait
}

func (q *aheadQueues) len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.count
}

// add queues the deliveries of a claim that were claimed ahead.
//
// It returns those that start now. A worker must start with each of them, and call next
// until it reports false, or drop or block. When the last worker of an endpoint has ended
// meanwhile, deliveries that were claimed ahead start, too.
//
// The deliveries in back must be given back: their endpoint is blocked.
func (q *aheadQueues) add(claimed []store.Delivery) (now, back []store.Delivery) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.waiting == nil {
		q.waiting, q.workers, q.blocked = map[string][]store.Delivery{}, map[string]int{}, map[string]int{}
	}
	for _, d := range claimed {
		switch {
		case !d.Ahead:
			q.workers[d.EndpointID]++
			now = append(now, d)
		case q.blocked[d.EndpointID] > 0:
			back = append(back, d)
		default:
			q.waiting[d.EndpointID] = append(q.waiting[d.EndpointID], d)
			q.count++
		}
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
	return now, back
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
	return q.takeAll(endpointID)
}

func (q *aheadQueues) takeAll(endpointID string) []store.Delivery {
	all := q.waiting[endpointID]
	delete(q.waiting, endpointID)
	q.count -= len(all)
	q.end(endpointID)
	return all
}

// block is drop after a failure. Nothing is queued for the endpoint before unblock: until
// the failure is recorded, a claim does not know of it.
func (q *aheadQueues) block(endpointID string) []store.Delivery {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.blocked[endpointID]++
	return q.takeAll(endpointID)
}

func (q *aheadQueues) unblock(endpointID string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.blocked[endpointID]--; q.blocked[endpointID] == 0 {
		delete(q.blocked, endpointID)
	}
}

// end counts the end of a worker.
func (q *aheadQueues) end(endpointID string) {
	if q.workers[endpointID]--; q.workers[endpointID] == 0 {
		delete(q.workers, endpointID)
	}
}

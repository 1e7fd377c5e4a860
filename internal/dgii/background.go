package dgii

import (
	"context"
	"sync"
)

// background runs the goroutines that the client owns.
type background struct {
	ctx    context.Context // ends with close
	cancel context.CancelFunc

	mu     sync.Mutex
	closed bool
	wg     sync.WaitGroup
}

func newBackground() *background {
	b := &background{}
	b.ctx, b.cancel = context.WithCancel(context.Background()) //nolint:forbidigo // the client ends it with close; no caller lives as long
	return b
}

// start runs f in a goroutine. It returns false and runs nothing after close.
func (b *background) start(f func(context.Context)) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return false
	}
	b.wg.Go(func() { f(b.ctx) })
	return true
}

// close cancels the goroutines and waits for them.
func (b *background) close() {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.cancel()
	b.wg.Wait()
}

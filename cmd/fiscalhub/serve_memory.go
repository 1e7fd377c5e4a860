package main

import (
	"log/slog"
	"math"
	"os"
	"runtime"
	"runtime/debug"

	"github.com/fiscalhub/fiscalhub/internal/capacity"
)

// memoryLimit returns the memory that the process may use: the value of
// --memory-limit, or what the machine has for it. It returns a usageError when the
// value is not a size or too small.
func memoryLimit(flag string) (capacity.Memory, error) {
	if flag == "" {
		return capacity.MachineMemory(os.DirFS("/")), nil
	}
	bytes, err := capacity.ParseSize(flag)
	if err != nil {
		return capacity.Memory{}, wrongUsage("--memory-limit: %q must be a size such as 512MiB or 2GiB",
			"--memory-limit: %q debe ser un tamaño como 512MiB o 2GiB", flag)
	}
	if bytes < capacity.MinMemory {
		return capacity.Memory{}, wrongUsage("--memory-limit must be at least 128MiB",
			"--memory-limit debe ser 128MiB o más")
	}
	return capacity.Memory{Bytes: bytes, Source: "--memory-limit"}, nil
}

// newCapacity returns the capacity of the process, and limits its heap. The
// variables GOMEMLIMIT and GOGC of the Go runtime win over the limit.
func newCapacity(m capacity.Memory, log *slog.Logger) *capacity.Capacity {
	if m.Bytes == 0 {
		log.Warn("Cannot read the memory of this machine. The process has no memory limit; set one with --memory-limit.")
		return capacity.New(capacity.DefaultLimits(math.MaxInt64, runtime.GOMAXPROCS(0)))
	}
	log.Info("The process has a memory limit.", "bytes", m.Bytes, "source", m.Source)
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(capacity.HeapLimit(m.Bytes))
	}
	if os.Getenv("GOGC") == "" {
		// The service allocates much and keeps little: a rarer garbage collection
		// saves time. The limit bounds what it costs.
		debug.SetGCPercent(400)
	}
	return capacity.New(capacity.DefaultLimits(m.Bytes, runtime.GOMAXPROCS(0)))
}

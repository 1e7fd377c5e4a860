package capacity

import (
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
)

// A Memory is how much memory the process may use, and what says so.
type Memory struct {
	Bytes  int64 // 0: not known
	Source string
}

// MachineMemory returns how much memory the process should use on this machine: nine
// tenths of the limit of its control group or, without one, a half of the memory of
// the machine. root is the root of the file system. Without Linux's files Bytes is 0.
func MachineMemory(root fs.FS) Memory {
	total := machineTotal(root)
	if limit := groupLimit(root); limit > 0 && (total == 0 || limit < total) {
		return Memory{limit / 10 * 9, "nine tenths of the limit of the control group"}
	}
	return Memory{total / 2, "a half of the memory of the machine"}
}

// machineTotal returns the memory of the machine, or 0.
func machineTotal(root fs.FS) int64 {
	for line := range fileLines(root, "proc/meminfo") {
		if value, ok := strings.CutPrefix(line, "MemTotal:"); ok {
			kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 53)
			if err == nil {
				return kib << 10
			}
		}
	}
	return 0
}

// groupLimit returns the smallest memory limit of the control groups of the process,
// or 0 when there is none.
func groupLimit(root fs.FS) int64 {
	var limit int64
	for line := range fileLines(root, "proc/self/cgroup") {
		parts := strings.SplitN(line, ":", 3) // hierarchy, controllers, path
		if len(parts) != 3 {
			continue
		}
		switch {
		case parts[0] == "0" && parts[1] == "":
			limit = smallest(limit, limitAbove(root, "sys/fs/cgroup", parts[2], "memory.max"))
		case strings.Contains(","+parts[1]+",", ",memory,"):
			limit = smallest(limit, limitAbove(root, "sys/fs/cgroup/memory", parts[2], "memory.limit_in_bytes"))
		}
	}
	return limit
}

// limitAbove returns the smallest limit of a group and of the groups that it is in.
// In a container the path may be that of the host, and then only the mounted root
// has the file.
func limitAbove(root fs.FS, mount, group, file string) int64 {
	var limit int64
	for group = path.Clean("/" + group); ; group = path.Dir(group) {
		for line := range fileLines(root, path.Join(mount, group, file)) {
			// "max", and in the first version of control groups a huge number, mean no limit.
			if n, err := strconv.ParseInt(strings.TrimSpace(line), 10, 64); err == nil && n < 1<<60 {
				limit = smallest(limit, n)
			}
		}
		if group == "/" {
			return limit
		}
	}
}

// smallest returns the smaller one of two limits; 0 means no limit.
func smallest(a, b int64) int64 {
	if a == 0 || (b > 0 && b < a) {
		return b
	}
	return a
}

// fileLines yields the lines of a file, and nothing when it cannot be read.
func fileLines(root fs.FS, name string) func(func(string) bool) {
	text, err := fs.ReadFile(root, name)
	if err != nil {
		return func(func(string) bool) {}
	}
	return strings.Lines(strings.TrimSuffix(string(text), "\n"))
}

// HeapLimit returns how much of the memory of a process its heap may take. The rest
// is for the program itself, the pages that SQLite keeps, and stacks.
func HeapLimit(memory int64) int64 { return memory - memory/8 - 32<<20 }

// MinMemory is the least memory that the service can work with.
const MinMemory = 128 << 20

// ParseSize parses a size such as 512MiB, 2G or 1073741824. K, M and G, with or
// without iB, are powers of 1024; KB, MB and GB are powers of 1000.
func ParseSize(text string) (int64, error) {
	number := strings.TrimRight(text, "KMGTiBkmgtb ")
	unit := strings.TrimSpace(text[len(number):])
	n, err := strconv.ParseInt(strings.TrimSpace(number), 10, 63)
	factor, known := map[string]int64{
		"": 1, "b": 1, "k": 1 << 10, "ki": 1 << 10, "kib": 1 << 10, "kb": 1e3, "m": 1 << 20, "mi": 1 << 20, "mib": 1 << 20, "mb": 1e6,
		"g": 1 << 30, "gi": 1 << 30, "gib": 1 << 30, "gb": 1e9, "t": 1 << 40, "ti": 1 << 40, "tib": 1 << 40, "tb": 1e12,
	}[strings.ToLower(unit)]
	if err != nil || !known || n < 0 || n > (1<<62)/factor {
		return 0, fmt.Errorf("%q must be a size such as 512MiB or 2GiB", text)
	}
	return n * factor, nil
}
